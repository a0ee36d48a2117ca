"""How a search is shown: on the way, at the end, as text and as HTML without script."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from nbcomp.display.plots.convergence import convergence_plot
from nbcomp.display.plots.plane import round_steps
from nbcomp.display.tuning import TuneProgress, TuneReport, annotated
from nbcomp.measure.timing import Ratio, Timing
from nbcomp.schedule.language import parse
from nbcomp.tuning.result import Difference, Finding, Found, KernelState, Point, State, Tuned


def kernel(name: str = "exp", calls: int = 1) -> KernelState:
    points = [Point(0.1 * k, None if k % 7 == 3 else 2e-4 / (1 + k / 40)) for k in range(80)]
    return KernelState(name, calls, 2e-4, 7e-5, tuple(points), 11, 5, 0.81, 0)


def state(**more: Any) -> State:
    return replace(State("f", "searching", 8.0, 30.0, (kernel(),), 3e-3, 2e-4), **more)


def timing(seconds: float) -> Timing:
    return Timing(seconds, 0.9 * seconds, 1.1 * seconds, 20, 3)


SCHEDULE = parse('vectorize("i")\ninterleave("i", 4)\nparallelize("i")')
DIFFERENCES = (
    Difference("vectors of i", "4", "2", 1.3),
    Difference("iterations of i for a core", "8", "1", None),
)
FINDINGS = (
    Finding('vectorize("i")', 5.2, "with 1 that build on it"),
    Finding('interleave("i", 4)', 1.01),
    Finding('parallelize("i")', None),
)


def tuned(**more: Any) -> Tuned:
    found = Found(kernel(), SCHEDULE, Ratio(0.4, 0.35, 0.45), DIFFERENCES, FINDINGS)
    made = Tuned(
        "f", None, (found,), 31.0, 22.0, timing(2e-4), timing(8e-5), Ratio(0.4, 0.35, 0.45)
    )
    return replace(made, numpy=timing(3e-3), record="tuned.jsonl", **more)


def picture(html: str) -> str:
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert found is not None
    return base64.b64decode(found[1]).decode()


def test_on_the_way() -> None:
    shown = TuneProgress(state())
    text = str(shown)
    assert text.startswith("tuning f: searching, 8 of 30 s, 22 s left")
    assert "80 trials, 10 a second" in text
    assert "so far 2.86× the speed of the default schedules, 42.9× that of NumPy" in text
    html = shown.html()
    assert "22 s left" in html
    assert "<script" not in html
    assert "exp 2.86×" in html


def test_before_the_first_trial() -> None:
    shown = TuneProgress(state(kernels=()))
    assert "the workers start" in str(shown)
    assert "<img" not in shown.html()


def test_what_was_found() -> None:
    shown = TuneReport(tuned(), 30.0)
    text = str(shown)
    assert text.startswith("f, tuned: 2.50× the speed of the default schedules")
    assert "80.0 µs against 200 µs by default (quartiles 2.22–2.86×), same result" in text
    assert "NumPy takes 3.00 ms: 37.5× its speed" in text
    assert "80 trials in 22.0 s: 4 a second" in text
    assert "ranked unseen trials of exp with a correlation of 0.81" in text
    assert 'what mattered most: vectorize("i")' in text
    assert 'vectorize("i")      # 5.20× as long without it, with 1 that build on it' in text
    assert "  vectors of i: 4 (by default 2: 1.30× as long so)" in text
    assert "  iterations of i for a core: 8 (by default 1)" in text
    html = shown.html()
    assert "vectors of i: 4 (by default 2: 1.30× as long so)" in html
    for words in ("What the tuner found", "5 candidates ruled out by estimate", "as JSON"):
        assert words in html
    assert "<script" not in html


def test_the_code_can_be_pasted() -> None:
    (found,) = tuned().kernels
    assert parse("\n".join(annotated(found))) == SCHEDULE


def test_nothing_found() -> None:
    shown = TuneReport(
        tuned(kernels=(Found(kernel(), stays=True),), change=None, note="no faster"), 30.0
    )
    text = str(shown)
    assert "the default schedules stay, nothing was clearly faster" in text
    assert "no faster" in text
    assert "against" not in text
    assert "What the tuner found" not in shown.html()


def test_where_nothing_was_found_nothing_is_compiled_otherwise() -> None:
    ended = tuned(kernels=(Found(kernel(), stays=True),), change=None, interrupted=True)
    text = str(TuneReport(ended, 30.0))
    assert "interrupted: nothing better was sure yet" in text
    assert "the trials are recorded in tuned.jsonl" in text
    assert "from now on" not in text
    assert "was kept" not in text


def test_what_the_final_comparison_did_not_confirm_is_no_speed_up() -> None:
    close = Found(kernel(), stays=True, final=Ratio(0.98, 0.95, 1.02))
    shown = TuneReport(tuned(kernels=(close,), change=None), 30.0)
    for form in (str(shown), shown.html()):
        words = " ".join(form.split())
        assert "the default schedules stay, the final comparison did not confirm what" in words
        assert "what the search took for 2.86× as fast: 1.02× (0.98–1.05)" in words
        assert "compared at the end" in words
        assert "1.02× (0.98–1.05): default stays" in words
        assert "speed-up" not in words.replace("Speed-up over the default schedule", "")


def test_why_what_was_found_is_not_used_is_said_once_and_first() -> None:
    """Kernels that were faster by themselves do not make the program faster."""
    close = Found(kernel(), stays=True, final=Ratio(0.88, 0.86, 0.9))
    why = "what was found for the kernels makes the program no faster: 0.91×"
    text = " ".join(str(TuneReport(tuned(kernels=(close,), change=None, declined=why))).split())
    assert text.startswith(f"f, tuned: the default schedules stay, {why}")
    assert text.count("no faster") == 1
    assert "did not confirm" not in text


def test_what_was_in_use_is_what_is_compared_with() -> None:
    stays = Found(kernel(), SCHEDULE, Ratio(0.6, 0.5, 0.7), stays=True, final=Ratio(1.1, 1.0, 1.2))
    text = str(TuneReport(tuned(kernels=(stays,), change=None, scheduled=True), 30.0))
    assert text.startswith("f, tuned: the schedules in use stay, the final comparison")
    assert "0.91× (0.83–1.00): the one in use stays" in text
    back = tuned(kernels=(Found(kernel(), final=Ratio(0.5, 0.4, 0.6)),), scheduled=True)
    text = str(TuneReport(back, 30.0))
    assert text.startswith("f, tuned: 2.50× the speed of the schedules in use before")
    assert "default from now on" in text


def test_a_search_that_took_longer_says_where_the_time_went() -> None:
    phases = (("starting", 9.0), ("searching", 22.0))
    text = " ".join(str(TuneReport(tuned(phases=phases), 10.0)).split())
    assert "took 31 s where 10 s were asked for: starting 9.0 s, searching 22.0 s" in text
    assert "were asked for" not in str(TuneReport(tuned(phases=phases), 30.0))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"interrupted": True}, "interrupted: the best until then was kept"),
        ({"lost": 1}, "1 worker lost to crashes or time-outs"),
        ({"problems": ("line 3: not a line of a record",)}, "skipped in the record: line 3"),
        ({"others": 1.5}, "other programs"),
    ],
)
def test_what_is_to_be_known(more: dict[str, Any], words: str) -> None:
    shown = TuneReport(tuned(**more), 30.0)
    assert words in str(shown)
    assert words in shown.html()


def test_how_often_numpy_was_timed_is_told_where_that_says_little() -> None:
    found = tuned()
    assert found.numpy is not None
    once = replace(found, numpy=replace(found.numpy, samples=1))
    assert "37.5× its speed, by 1 measurement only" in str(TuneReport(once, 30.0))
    assert "only" not in str(TuneReport(found, 30.0))


def test_a_noisy_machine_is_told() -> None:
    (found,) = tuned().kernels
    noisy = replace(found, state=replace(found.state, noise=1.7))
    words = "one schedule took up to 1.70× as long at another time"
    assert words in str(TuneReport(tuned(kernels=(noisy,)), 30.0))
    assert words not in str(TuneReport(tuned(), 30.0))


def test_the_plot_is_an_svg_with_a_curve_for_each_kernel() -> None:
    one, two = kernel(), kernel("<b>sum", 3)
    svg = picture(TuneProgress(state(kernels=(one, two))).html())
    root = ElementTree.fromstring(svg)
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 2
    assert "&lt;b&gt;sum" in svg
    assert all(0 <= float(e.get("cx", "0")) <= 660 for e in root.iter() if e.tag.endswith("circle"))


def test_a_plot_of_many_trials_stays_small() -> None:
    points = tuple(Point(k / 100, 1e-4) for k in range(5000))
    assert len(convergence_plot([replace(kernel(), points=points)], 50)) < 60_000
    assert convergence_plot([replace(kernel(), points=())], 50) == ""


@pytest.mark.parametrize(("low", "high"), [(0, 30), (0, 1.7), (0, 300), (2, 9)])
def test_round_steps(low: float, high: float) -> None:
    found = round_steps(low, high)
    assert 4 <= len(found) <= 11
    assert all(low <= v <= high for v in found)


def test_hostile_names_are_shown_as_text() -> None:
    name = "f\u202e<script>alert(1)</script>"
    found = Found(kernel(name), SCHEDULE, Ratio(0.4, 0.35, 0.45))
    for shown in (
        TuneReport(tuned(name=name, kernels=(found,)), 30.0),
        TuneProgress(state(name=name, kernels=(kernel(name),))),
    ):
        for form in (str(shown), shown.html()):
            assert "\u202e" not in form
        assert "<script" not in shown.html()
