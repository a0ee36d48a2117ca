"""Modules that PyTorch and nbcomp write in the same words, with inputs: `build(nn)` takes either's.

`references.npz` holds PyTorch's states and outputs for them; `make_references.py` made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Build = Callable[[Any], Any]

CASES: dict[str, tuple[Build, tuple[Any, ...]]] = {}
KEYWORDS: dict[str, dict[str, Any]] = {}  # further arguments of the call


def case(name: str, build: Build, *inputs: Any, **keywords: Any) -> None:
    """inputs: shapes of float32 arrays, or arrays."""
    CASES[name] = (build, inputs)
    KEYWORDS[name] = keywords


def arrays(name: str) -> list[Any]:
    """The inputs of a case, always the same."""
    rng = np.random.default_rng(sum(name.encode()))
    _, inputs = CASES[name]
    return [
        rng.standard_normal(x).astype(np.float32) if isinstance(x, tuple) else x for x in inputs
    ]


def flat(result: Any) -> list[Any]:
    """The arrays of a result, in order."""
    if isinstance(result, tuple | list):
        return [array for part in result for array in flat(part)]
    return [] if result is None else [result]


case("linear", lambda nn: nn.Linear(7, 5), (3, 7))
case("linear_no_bias", lambda nn: nn.Linear(7, 5, bias=False), (2, 3, 7))
case("bilinear", lambda nn: nn.Bilinear(3, 4, 5), (6, 3), (6, 4))
case("embedding", lambda nn: nn.Embedding(10, 4, padding_idx=2), np.array([[1, 2], [9, 0]]))
case("flatten", lambda nn: nn.Flatten(), (2, 3, 4))
case("flatten_some", lambda nn: nn.Flatten(1, 2), (2, 3, 4, 5))
case("unflatten", lambda nn: nn.Unflatten(1, (3, 4)), (2, 12))
case("dropout", lambda nn: nn.Dropout(0.3), (4, 5))

case("conv1d", lambda nn: nn.Conv1d(3, 5, 3, stride=2, padding=1), (2, 3, 11))
case("conv1d_same", lambda nn: nn.Conv1d(2, 4, 4, padding="same", dilation=2), (1, 2, 9))
case("conv2d", lambda nn: nn.Conv2d(3, 4, 3), (2, 3, 6, 7))
case("conv2d_1x1", lambda nn: nn.Conv2d(3, 4, 1, bias=False), (2, 3, 4, 5))
case(
    "conv2d_all",
    lambda nn: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=2),
    (2, 4, 8, 7),
)
case("conv2d_depthwise", lambda nn: nn.Conv2d(4, 4, 3, padding=1, groups=4), (2, 4, 6, 5))
case("conv2d_multiplier", lambda nn: nn.Conv2d(2, 6, 3, groups=2), (1, 2, 5, 5))
case("conv2d_unbatched", lambda nn: nn.Conv2d(3, 4, 3), (3, 5, 5))
for mode in ("reflect", "replicate", "circular"):
    case(
        f"conv2d_{mode}",
        lambda nn, mode=mode: nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode),
        (1, 2, 6, 5),
    )
case("conv3d", lambda nn: nn.Conv3d(2, 3, 2, padding=1), (1, 2, 3, 4, 3))

case("max_pool1d", lambda nn: nn.MaxPool1d(3, 2, padding=1), (2, 3, 9))
case("max_pool2d", lambda nn: nn.MaxPool2d(2), (2, 3, 7, 8))
case(
    "max_pool2d_all",
    lambda nn: nn.MaxPool2d((3, 2), (2, 1), (1, 0), (1, 2), ceil_mode=True),
    (2, 3, 8, 9),
)
case("max_pool2d_unbatched", lambda nn: nn.MaxPool2d(2), (3, 6, 6))
case("max_pool1d_no_window_beyond", lambda nn: nn.MaxPool1d(2, 3, ceil_mode=True), (2, 3, 6))
case("avg_pool1d", lambda nn: nn.AvgPool1d(3, 2, padding=1), (2, 3, 9))
case("avg_pool2d", lambda nn: nn.AvgPool2d(2), (2, 3, 7, 8))
case("avg_pool2d_ceil", lambda nn: nn.AvgPool2d(3, 2, padding=1, ceil_mode=True), (2, 3, 8, 8))
case(
    "avg_pool2d_inside",
    lambda nn: nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=False),
    (2, 3, 8, 7),
)
case("avg_pool2d_divisor", lambda nn: nn.AvgPool2d((2, 3), divisor_override=4), (2, 3, 6, 6))
case("adaptive_avg_pool1d", lambda nn: nn.AdaptiveAvgPool1d(3), (2, 3, 10))
case("adaptive_avg_pool2d", lambda nn: nn.AdaptiveAvgPool2d((1, 1)), (2, 3, 5, 6))
case("adaptive_avg_pool2d_uneven", lambda nn: nn.AdaptiveAvgPool2d((3, None)), (2, 3, 7, 4))
case("adaptive_max_pool2d", lambda nn: nn.AdaptiveMaxPool2d((2, 3)), (2, 3, 7, 6))

case("layer_norm", lambda nn: nn.LayerNorm(6), (4, 6))
case("layer_norm_two", lambda nn: nn.LayerNorm((3, 4), elementwise_affine=False), (2, 3, 4))
case("rms_norm", lambda nn: nn.RMSNorm(6), (4, 6))
case("batch_norm1d", lambda nn: nn.BatchNorm1d(3), (4, 3))
case("batch_norm1d_length", lambda nn: nn.BatchNorm1d(3), (4, 3, 5))
case("batch_norm2d", lambda nn: nn.BatchNorm2d(3), (2, 3, 4, 5))
case("batch_norm2d_own", lambda nn: nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 5))
case("group_norm", lambda nn: nn.GroupNorm(2, 6), (2, 6, 3, 4))
case("instance_norm1d", lambda nn: nn.InstanceNorm1d(3), (2, 3, 5))
case("instance_norm3d", lambda nn: nn.InstanceNorm3d(2, affine=True), (2, 2, 3, 4, 2))
case(
    "max_pool3d", lambda nn: nn.MaxPool3d((2, 3, 2), 2, (1, 1, 0), ceil_mode=True), (2, 3, 6, 7, 5)
)
case("avg_pool3d", lambda nn: nn.AvgPool3d(3, 2, 1, count_include_pad=False), (2, 3, 6, 7, 5))
case("adaptive_avg_pool3d", lambda nn: nn.AdaptiveAvgPool3d((2, 1, 3)), (2, 3, 6, 7, 5))
case("adaptive_max_pool3d", lambda nn: nn.AdaptiveMaxPool3d((2, None, 3)), (2, 3, 6, 4, 5))
case(
    "conv3d_all",
    lambda nn: nn.Conv3d(4, 6, (1, 3, 2), (1, 2, 1), (0, 1, 2), (1, 2, 1), groups=2),
    (1, 4, 3, 9, 8),
)
case(
    "conv_transpose2d_groups",
    lambda nn: nn.ConvTranspose2d(6, 3, (2, 3), (2, 1), (1, 0), groups=3, dilation=2),
    (2, 6, 5, 7),
)
case(
    "upsample_trilinear", lambda nn: nn.Upsample(scale_factor=2, mode="trilinear"), (1, 2, 3, 4, 2)
)
case("gru_three", lambda nn: nn.GRU(4, 17, 2, bidirectional=True, batch_first=True), (3, 7, 4))
case("lstm_long", lambda nn: nn.LSTM(5, 19), (20, 2, 5))
case("instance_norm2d", lambda nn: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5))

for activation in (
    *("ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Sigmoid"),
    *("LogSigmoid", "Hardsigmoid", "Hardswish", "Hardtanh", "Tanh", "Softsign", "Tanhshrink"),
    *("Softshrink", "Hardshrink", "Softplus", "PReLU"),
):
    case(activation, lambda nn, name=activation: getattr(nn, name)(), (4, 6))
case("gelu_tanh", lambda nn: nn.GELU(approximate="tanh"), (4, 6))
case("leaky_slope", lambda nn: nn.LeakyReLU(0.2), (4, 6))
case("softplus_beta", lambda nn: nn.Softplus(2.0), (4, 6))
case("threshold", lambda nn: nn.Threshold(0.1, 20.0), (4, 6))
case("glu", lambda nn: nn.GLU(1), (4, 6))
case("softmax", lambda nn: nn.Softmax(dim=1), (4, 6, 2))
case("log_softmax", lambda nn: nn.LogSoftmax(dim=-1), (4, 6))
case("softmin", lambda nn: nn.Softmin(dim=-1), (4, 6))
case("prelu_channels", lambda nn: nn.PReLU(3), (2, 3, 4))

case("rnn", lambda nn: nn.RNN(4, 5), (6, 2, 4))
case("rnn_relu", lambda nn: nn.RNN(4, 5, nonlinearity="relu", batch_first=True), (2, 6, 4))
case("lstm", lambda nn: nn.LSTM(4, 5), (6, 2, 4))
case("lstm_all", lambda nn: nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), (2, 5, 4))
case("lstm_unbatched", lambda nn: nn.LSTM(4, 3, bias=False), (5, 4))
case("gru", lambda nn: nn.GRU(4, 5, num_layers=2), (4, 2, 4), (2, 2, 5))
case("gru_both", lambda nn: nn.GRU(4, 3, bidirectional=True), (4, 2, 4))
case("rnn_cell", lambda nn: nn.RNNCell(4, 5), (2, 4), (2, 5))
case("lstm_cell", lambda nn: nn.LSTMCell(4, 5), (2, 4))
case("gru_cell", lambda nn: nn.GRUCell(4, 5), (4,), (5,))

case("attention", lambda nn: nn.MultiheadAttention(8, 2), (5, 2, 8), (6, 2, 8), (6, 2, 8))
case(
    "attention_batch_first",
    lambda nn: nn.MultiheadAttention(8, 4, batch_first=True),
    (2, 5, 8), (2, 5, 8), (2, 5, 8),
    need_weights=False,
)  # fmt: skip
case(
    "attention_masks",
    lambda nn: nn.MultiheadAttention(8, 2, batch_first=True),
    (2, 4, 8), (2, 4, 8), (2, 4, 8),
    key_padding_mask=np.array([[False, False, False, True], [False, False, False, False]]),
    attn_mask=np.triu(np.ones((4, 4), bool), 1),
)  # fmt: skip
case(
    "attention_sizes",
    lambda nn: nn.MultiheadAttention(8, 2, kdim=6, vdim=4, bias=False),
    (5, 2, 8), (3, 2, 6), (3, 2, 4),
    average_attn_weights=False,
)  # fmt: skip
case(
    "encoder_layer",
    lambda nn: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"),
    (2, 5, 8),
)
case(
    "encoder",
    lambda nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, norm_first=True), 2, nn.LayerNorm(8)
    ),
    (5, 2, 8),
)
case(
    "mlp",
    lambda nn: nn.Sequential(
        nn.Linear(12, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)
    ),
    (4, 12),
)
case(
    "lenet",
    lambda nn: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 5),
    ),
    (2, 1, 10, 10),
)  # fmt: skip

case("conv_transpose1d", lambda nn: nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), (2, 3, 7))
case("conv_transpose2d", lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 5, 6))
case(
    "conv_transpose2d_all",
    lambda nn: nn.ConvTranspose2d(4, 2, (3, 2), (2, 3), (3, 0), (1, 2), 1, False, (1, 3)),
    (1, 4, 5, 6),
)
case("conv_transpose3d", lambda nn: nn.ConvTranspose3d(2, 3, 2, 2), (1, 2, 3, 4, 2))
case("upsample", lambda nn: nn.Upsample(scale_factor=2), (2, 3, 4, 5))
case("upsample_size", lambda nn: nn.Upsample(size=(7, 3)), (2, 3, 4, 5))
case("upsample_exact", lambda nn: nn.Upsample(size=(7, 9), mode="nearest-exact"), (1, 3, 4, 5))
case("upsample_line", lambda nn: nn.Upsample(scale_factor=1.7, mode="linear"), (2, 3, 11))
case("upsample_bilinear", lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 5))
case(
    "upsample_corners",
    lambda nn: nn.Upsample(size=(9, 4), mode="bilinear", align_corners=True),
    (2, 3, 4, 5),
)
