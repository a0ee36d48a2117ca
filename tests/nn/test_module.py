"""Modules: names, state, sharing, changes that compiled code sees."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import checkpoint, nn
from nbcomp.checkpoint import CheckpointError
from nbcomp.nn import functional as F
from nbcomp.nn.arrays import REDUCTIONS


class Mlp(nn.Module):
    """Two layers that share a parameter with a third, and a buffer."""

    def __init__(self) -> None:
        self.fc1 = nn.Linear(6, 4)
        self.fc2 = nn.Linear(4, 6)
        self.register_buffer("scale", np.float32([2.0]))
        self.register_buffer("scratch", np.zeros(3), persistent=False)
        self.tied = nn.Linear(6, 4, bias=False)
        self.tied.weight = self.fc1.weight

    scale: Any
    scratch: Any

    def forward(self, x: Any) -> Any:
        h = self.fc1(x).relu()
        return self.fc2(h) * self.scale + F.relu(self.tied(x)) @ self.fc2.weight.T


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.standard_normal((3, 6)).astype(np.float32)


NAMES = ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "tied.weight"]


def test_names_are_pytorch_s() -> None:
    model = Mlp()
    assert list(model.state_dict()) == NAMES
    assert [n for n, _ in model.named_parameters()] == NAMES[1:-1]
    assert [n for n, _ in model.named_buffers()] == ["scale", "scratch"]
    assert [n for n, _ in model.named_modules()] == ["", "fc1", "fc2", "tied"]
    assert [n for n, _ in model.named_children()] == ["fc1", "fc2", "tied"]
    assert model.get_submodule("fc2") is model.fc2
    assert model.get_parameter("fc1.weight") is model.tied.weight
    with pytest.raises(AttributeError, match=r"no parameter 'fc3\.weight'"):
        model.get_parameter("fc3.weight")


def test_a_change_is_seen_without_compiling_again(x: Any) -> None:
    model = Mlp()
    compiled = nbcomp.jit(model)
    changes: list[Any] = [
        lambda: None,
        lambda: model.fc1.weight.__imul__(2),
        lambda: setattr(model.fc1, "weight", np.ones((4, 6), np.float32)),
        lambda: setattr(model.fc2.bias, "data", np.ones(6, np.float32)),
        lambda: setattr(model, "fc2", nn.Linear(4, 6)),
        lambda: model.scale.__setitem__(0, 5),
        lambda: model.load_state_dict(Mlp().state_dict()),
    ]
    for change in changes:
        change()
        np.testing.assert_allclose(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    # A new object in place of `fc2`, and a parameter that is no longer shared, are other programs.
    assert len(compiled.variants) <= 3
    assert not compiled.fallbacks


def test_another_shape_compiles_again(x: Any) -> None:
    layer = nn.Linear(6, 4)
    compiled = nbcomp.jit(layer)
    compiled(x)
    layer.weight = np.ones((5, 6), np.float32)
    layer.bias = None
    np.testing.assert_allclose(compiled(x), x @ np.ones((6, 5), np.float32), rtol=1e-5)


def test_a_parameter_is_an_array(x: Any) -> None:
    layer = nn.Linear(6, 4)
    weight, array = layer.weight, layer.weight.data

    def program(x: Any) -> Any:
        both = np.concatenate([weight, x]) * weight[0] - weight.T[:, 0]
        return both + np.exp(-weight).sum(axis=0), weight.mean(), x @ weight.T, weight.shape[0]

    for run in (program, nbcomp.jit(program)):
        both, mean, product, rows = run(x)
        np.testing.assert_allclose(
            both,
            np.concatenate([array, x]) * array[0] - array[0] + np.exp(-array).sum(0),
            rtol=1e-5,
            atol=1e-6,
        )
        np.testing.assert_allclose(mean, array.mean(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(product, x @ array.T, rtol=1e-4, atol=1e-5)
        assert rows == 4
        assert type(both) is type(product) is np.ndarray
    assert len(weight) == 4
    assert np.float32(0) not in weight
    assert weight.dtype == np.float32
    assert (weight.relu() >= 0).all()
    assert "Parameter containing" in repr(weight)
    weight += 1
    assert weight.data is array
    np.add(weight, 1, out=weight)
    weight[0] = 7
    assert array[0, 0] == 7
    with pytest.raises(AttributeError):
        weight.nothing  # noqa: B018


def test_methods_of_layers_are_there_in_forward_only(x: Any) -> None:
    class Inside(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu().softmax(-1).sum(dim=-1, keepdim=True), x.mean(dim=0).tanh()

    model = Inside()
    expected = [np.ones((3, 1)), np.tanh(x.mean(0))]
    for run in (model, nbcomp.jit(model)):
        for found, right in zip(run(x), expected, strict=True):
            assert type(found) is np.ndarray
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert not hasattr(model(x)[0], "relu")

    def outside(x: Any) -> Any:
        return x.relu()

    for function in (outside, nbcomp.jit(outside)):
        with pytest.raises(AttributeError, match="relu"):
            function(x)


def test_compiled_functions_may_be_called_in_forward(x: Any) -> None:
    half = nbcomp.jit(lambda x: x * 0.5)

    class Halving(nn.Module):
        def __init__(self) -> None:
            self.fc = nbcomp.jit(nn.Linear(6, 6))

        def forward(self, x: Any) -> Any:
            return half(self.fc(x)).relu()

    model = Halving()
    assert type(model(x)) is np.ndarray
    np.testing.assert_allclose(nbcomp.jit(model)(x), model(x), rtol=1e-5, atol=1e-6)
    assert len(half.variants) == 1
    assert not half.fallbacks


def test_a_class_can_be_compiled(x: Any) -> None:
    @nbcomp.jit
    class Compiled(Mlp):
        pass

    @nbcomp.jit
    class Plain:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return x * self.factor

    models = [Compiled(), Compiled()]
    for model in models:
        twin = Mlp()
        twin.load_state_dict(model.state_dict())
        found = model(x)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, twin(x), rtol=1e-5, atol=1e-5)
    assert len(Compiled.forward.variants) == 1  # which all instances share
    assert isinstance(models[0], Compiled)
    outer = nn.Sequential(models[0], nn.ReLU())
    np.testing.assert_allclose(nbcomp.jit(outer)(x), outer(x), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(Plain(3.0)(x), x * 3.0)
    with pytest.raises(TypeError, match="no method"):
        nbcomp.jit(type("Nothing", (), {}))


def test_a_compiled_class_has_the_arrays_methods_around_breaks(x: Any) -> None:
    @nbcomp.jit
    class Printing(nn.Module):
        def forward(self, x: Any) -> Any:
            print("here")
            return x.relu()

    found = Printing()(x)
    np.testing.assert_array_equal(found, np.maximum(x, 0))


def test_containers(x: Any) -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
            self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})

        def forward(self, x: Any, head: str = "a") -> Any:
            for layer in self.layers:
                x = layer(x)
            return self.heads[head](self.layers[0](x))

    model = Stack()
    names = ["layers.0.weight", "layers.1.bias", "heads.a.weight", "heads.b.bias"]
    assert set(names) <= set(model.state_dict())
    compiled = nbcomp.jit(model)
    for head in ("a", "b"):
        np.testing.assert_allclose(compiled(x, head), model(x, head), rtol=1e-4, atol=1e-5)
    assert not compiled.fallbacks
    model.layers.append(nn.Linear(6, 6))
    np.testing.assert_allclose(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    named = nn.Sequential({"first": nn.Linear(6, 4), "act": nn.ReLU()})
    assert list(named.state_dict()) == ["first.weight", "first.bias"]
    assert named.first is named[0]
    assert len(named[:1]) == 1
    with pytest.raises(TypeError, match="a module is expected"):
        nn.ModuleList([3])  # type: ignore[list-item]


def test_apply_train_and_copies(x: Any) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    seen: list[str] = []
    model.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Dropout", "Sequential"]
    assert not model.training
    model.train()
    assert all(m.training for m in model.modules())
    np.random.seed(0)
    dropped = model(x)
    assert (dropped == 0).sum() > 0
    assert model[1].num_batches_tracked == 1
    assert model[1].running_mean.any()
    jitted = nbcomp.jit(model)
    assert (jitted(x) == 0).sum() > 0
    assert "model.eval()" in str(jitted.explain())
    twin = copy.deepcopy(model.eval())
    np.testing.assert_array_equal(twin(x), model(x))
    twin[0].weight += 1
    assert not np.array_equal(twin[0].weight, model[0].weight)
    assert model.double()(x.astype(np.float64)).dtype == np.float64


def test_a_state_that_does_not_fit_is_refused() -> None:
    model = Mlp()
    state = dict(Mlp().state_dict())
    before = model.fc1.weight.data.copy()
    del state["fc2.bias"]
    state["fc3.weight"] = np.zeros(2)
    with pytest.raises(nn.StateMismatch) as error:
        model.load_state_dict(state)
    assert "missing: fc2.bias" in str(error.value)
    assert "unexpected: fc3.weight" in str(error.value)
    assert np.array_equal(model.fc1.weight, before)
    assert model.load_state_dict(state, strict=False) == (["fc2.bias"], ["fc3.weight"])
    state["fc1.bias"] = np.zeros(5)
    with pytest.raises(nn.StateMismatch, match=r"fc1\.bias: the state has shape \(5,\)"):
        model.load_state_dict(state, strict=False)
    with pytest.raises(nn.StateMismatch, match="not an array of numbers"):
        model.load_state_dict({"fc1.bias": "weights"}, strict=False)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_checkpoints(suffix: str, tmp_path: Path) -> None:
    model, twin = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(2))
    checkpoint.save(model.state_dict(), tmp_path / f"model{suffix}")
    found = checkpoint.load(tmp_path / f"model{suffix}")
    assert set(found) == set(model.state_dict())
    assert twin.load_state_dict(found) == ([], [])
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(twin.state_dict()[name], array)


def test_no_file_is_executed(tmp_path: Path) -> None:
    pickled = tmp_path / "objects.npz"
    np.savez(pickled, a=np.array([print], dtype=object))
    with pytest.raises(CheckpointError, match="plain arrays"):
        checkpoint.load(pickled)
    with pytest.raises(CheckpointError, match=r"pickles(.|\n)*model\.safetensors"):
        checkpoint.load("model.pt")
    for name in ("broken.npz", "broken.safetensors"):
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(CheckpointError, match="broken"):
            checkpoint.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "none.safetensors")


def test_wrong_shapes_are_told(x: Any) -> None:
    with pytest.raises(ValueError, match="takes 4 channels, but the input"):
        nn.Conv2d(4, 2, 3)(np.zeros((1, 3, 8, 8), np.float32))
    with pytest.raises(ValueError, match="does not fit"):
        nn.Conv1d(4, 2, 9)(np.zeros((1, 4, 8), np.float32))
    with pytest.raises(ValueError, match="groups"):
        nn.Conv1d(4, 6, 3, groups=4)
    with pytest.raises(
        ValueError, match=r"Linear\(in_features=5.* takes .*\(..., 5\), not \(3, 6\)"
    ):
        nn.Linear(5, 4)(x)
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(x)


def test_topk_orders_as_documented() -> None:
    x = np.array([1, np.nan, 3, 3, -1], np.float32)
    for run in (F.topk, nbcomp.jit(lambda x: F.topk(x, 3))):
        values, places = run(x, 3) if run is F.topk else run(x)
        assert places.tolist() == [1, 2, 3]
        np.testing.assert_array_equal(values, x[[1, 2, 3]])
    assert F.topk(x, 2, largest=False)[1].tolist() == [4, 0]
    with pytest.raises(ValueError, match="no 6 elements"):
        F.topk(x, 6)


def test_the_source_of_a_compiled_model_is_what_the_user_wrote(x: Any) -> None:
    compiled = nbcomp.compile(Mlp(), x)
    assert compiled.source.lstrip().startswith("def forward(self, x: Any) -> Any:")
    assert compiled.location is not None
    assert compiled.location.file == __file__
    assert nbcomp.compile(nn.Sequential(nn.Linear(6, 4)), x).source == ""


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    "names", [{"dim": -1, "keepdim": True}, {"axis": -1, "keepdims": True}, {"axis": 0}, {}]
)
def test_reductions_take_both_names(x: Any, name: str, names: dict[str, Any]) -> None:
    class Reduces(nn.Module):
        def forward(self, x: Any) -> Any:
            return getattr(x * 2, name)(**names)

    numpy = {"dim": "axis", "keepdim": "keepdims"}
    expected = getattr(x * 2, name)(**{numpy.get(k, k): v for k, v in names.items()})
    model = Reduces()
    for run in (model, nbcomp.jit(model), nbcomp.trace(model, x), nbcomp.compile(model, x)):
        found = run(x)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_keepdims_after_a_layer(x: Any) -> None:
    class Sums(nn.Module):
        def __init__(self) -> None:
            self.l = nn.Linear(6, 4)

        def forward(self, x: Any) -> Any:
            return self.l(x).sum(-1, keepdims=True)

    model = Sums()
    for run in (nbcomp.jit(model), nbcomp.trace(model, x)):
        np.testing.assert_allclose(run(x), model(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("names", [{"axis": 0, "dim": 0}, {"keepdim": True, "keepdims": True}])
def test_an_argument_by_both_names(x: Any, names: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="got both"):
        F.sum(x, **names)
