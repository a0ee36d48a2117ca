"""Products of narrow numbers by an instruction that adds up groups of terms, or whole tiles.

Knows products and the instructions of a machine; not how the loops around them run (`walks`).
"""

from __future__ import annotations

from dataclasses import replace

from nbcomp.loop.grammar import Kernel
from nbcomp.loop.intrinsics import INTRINSICS, dots, operands, terms
from nbcomp.machine import Machine
from nbcomp.schedule.blocks import Blocking, Product
from nbcomp.schedule.decisions import Decide, among
from nbcomp.schedule.stepwise import Stepwise
from nbcomp.schedule.walks import REGISTERS, SQUARE, TALL, Right, height_of, size_of
from nbcomp.types import DType

TILE = 16  # rows, columns and groups of terms of an instruction on tiles


def with_groups(kernel: Kernel, product: Product, machine: Machine) -> tuple[Kernel, Product, str]:
    """A product of narrow numbers with its terms in the groups that an instruction of the machine
    adds up, as if each group were one term; and the instruction, if there is one."""
    found = _instruction(product, machine)
    if found is None:
        return kernel, product, ""
    name, group = found
    if product.inner:
        return kernel, product, name
    made = Stepwise(kernel)
    (outer,) = made.do("split", product.shared, group)
    grouped = replace(
        product, shared=outer, depth=product.depth // group, inner=product.shared, terms=group
    )
    return made.kernel, grouped, name


def in_groups(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """A tile as broad as a block of weights that came packed, as tall as registers allow."""
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    lanes = machine.vector_bytes // size_of(product)
    vectors = -(-product.width // lanes)
    most = max(min((registers - 1) // vectors - 1, max(TALL)), 1)
    height = height_of(product.height, most)
    height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
    return Blocking("panels", min(height, product.height), product.width, lanes)


def instructed(
    product: Product,
    how: Blocking,
    instruction: str,
    packed: bool,
    machine: Machine,
    decide: Decide,
) -> Blocking:
    """How a product is walked, by an instruction; packed: its weights came in groups already."""
    right: Right = "in place" if packed else "packed"
    how = replace(how, right=right, instruction=instruction, ahead=0)
    return _in_tiles(product, how, machine, decide)


def _instruction(product: Product, machine: Machine) -> tuple[str, int] | None:
    """The instruction for a product of narrow numbers, and how many terms it adds up."""
    if product.left is None or product.right is None or not product.rows:
        return None
    lanes, dtypes = machine.vector_bytes // size_of(product), _dtypes(product)
    if dtypes[0] == dtypes[2] or product.height < SQUARE:
        return None
    for intrinsic in INTRINSICS.values():
        shape = dots(intrinsic)
        if shape != (lanes, dtypes) or not intrinsic.runs_on(machine.features):
            continue
        group = terms(intrinsic)
        fits = product.terms == group if product.inner else product.depth % group == 0
        if fits and product.left.turned:
            return intrinsic.name, group
    return None


def _dtypes(product: Product) -> tuple[DType, DType, DType]:
    """The dtypes of the operands, which are arrays, and of the sums."""
    assert product.left is not None
    assert product.right is not None
    return product.left.buffer.dtype, product.right.buffer.dtype, product.sum.buffer.dtype


def _in_tiles(product: Product, how: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """The same by an instruction whose sums are a tile, if the machine has one for these numbers
    and the product fills tiles."""
    name = _tile_instruction(product, machine)
    if not name or min(product.height, product.width) < TILE or product.depth % TILE:
        return how
    if not decide(f"tiles of {product.rows}", 1, (0, 1)):
        return how
    tile = Blocking("panels", TILE, TILE, how.lanes, right=how.right)
    return replace(tile, instruction=how.instruction, tiles=name)


def _tile_instruction(product: Product, machine: Machine) -> str:
    """The instruction that adds products of groups of as many terms to a tile; "" for none."""
    for intrinsic in INTRINSICS.values():
        tiles = dots(intrinsic) is None and intrinsic.runs_on(machine.features)
        if tiles and operands(intrinsic) == _dtypes(product) and terms(intrinsic) == product.terms:
            return intrinsic.name
    return ""
