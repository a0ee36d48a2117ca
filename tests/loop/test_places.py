"""What a kernel has no place for has those of its uses."""

from __future__ import annotations

from nbcomp.loop.grammar import Let, Load
from nbcomp.loop.places import construct_of, places_by_use
from nbcomp.loop.printer import kernel_lines, print_kernel
from nbcomp.origin import Construct
from nbcomp.record import Location, joined
from tests.kernels import apply, buffer, kernel, load, loop, store, var

A, B = Location("cell", 3, 4), Location("cell", 7)
x, y = buffer("x", (8,)), buffer("y", (8,), "output")


def test_an_array_belongs_to_what_reads_it() -> None:
    read = load(x, "i")
    k = kernel(loop("i", 8, store(y, ("i",), apply("exp", read, location=A), B)), buffers=[x, y])
    assert places_by_use(k)[id(read)] == A


def test_a_bound_value_belongs_to_all_that_read_the_name() -> None:
    read = load(x, "i")
    bound = Let("v", read)
    uses = apply("exp", var("v"), location=A), apply("negative", var("v"), location=B)
    total = apply("add", *uses, location=B)
    k = kernel(loop("i", 8, bound, store(y, ("i",), total, B)), buffers=[x, y])
    found = places_by_use(k)
    assert set(found[id(bound)].every()) == {A, B}
    assert set(found[id(read)].every()) == {A, B}


def test_lines_of_a_kernel_with_places() -> None:
    value = apply("exp", load(x, "i", location=B), location=A)
    k = kernel(loop("i", 8, store(y, ("i",), value, A)), buffers=[x, y])
    lines = list(kernel_lines(k))
    assert "\n".join(text for text, _, _ in lines) == print_kernel(k)
    _, head, body, end = lines
    assert head[1:] == ((), Construct.LOOP)
    assert body[1:] == ((A, B), Construct.EXPRESSION)
    assert end == ("}", (), Construct.EXPRESSION)


def test_locations_are_joined_in_order_each_once() -> None:
    both = joined([A, None, B, A])
    assert both is not None
    assert both.every() == (A, B)
    assert joined([both, A]) == both
    assert joined([None]) is None
    assert str(both) == "lines 3, 7"


def test_statements_that_are_not_expressions() -> None:
    assert construct_of(loop("i", 8)) == Construct.LOOP
    assert construct_of(Let("v", Load(x.dtype, x, ()))) == ""
    assert construct_of(None) == ""
