"""How many inputs an operator cannot do without: fewer, and its formula would price another one."""

from typing import Final

_AT_LEAST: Final[dict[int, str]] = {
    0: "Constant Optional OptionalHasElement RandomNormal RandomUniform SequenceEmpty",
    2: """
        Add AffineGrid And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike CausalConvWithState
        CenterCropPad Compress Conv ConvInteger ConvTranspose CumProd CumSum DequantizeLinear Div
        Equal Expand Gather GatherElements GatherND Gemm Greater GreaterOrEqual GridSample
        LayerNormalization Less LessOrEqual MatMul MatMulInteger MaxRoiPool MaxUnpool Mod Mul
        NegativeLogLikelihoodLoss NonMaxSuppression Or PRelu Pow QuantizeLinear RMSNormalization
        ReverseSequence STFT SequenceAt SequenceInsert SoftmaxCrossEntropyLoss Sub SwiGLU
        TensorScatter Tile Xor
        com.microsoft.Attention com.microsoft.BiasDropout com.microsoft.BiasGelu
        com.microsoft.BiasSplitGelu com.microsoft.FusedConv com.microsoft.FusedGemm
        com.microsoft.FusedMatMul com.microsoft.FusedMatMulActivation com.microsoft.GemmFastGelu
        com.microsoft.RotaryEmbedding com.microsoft.SkipLayerNormalization
        com.microsoft.SkipSimplifiedLayerNormalization com.microsoft.TransposeMatMul""",
    3: """
        Attention Col2Im DeformConv GRU GroupNormalization InstanceNormalization LSTM
        LinearAttention OneHot RNN Range RoiAlign RotaryEmbedding Scatter ScatterElements ScatterND
        Where
        com.microsoft.BiasAdd com.microsoft.DynamicQuantizeMatMul com.microsoft.GroupNorm
        com.microsoft.MatMulNBits""",
    4: "com.microsoft.MatMulIntegerToFloat com.microsoft.QLinearAdd com.microsoft.QLinearMul",
    5: "BatchNormalization MelWeightMatrix com.microsoft.QAttention",
    6: "com.microsoft.QGemm",
    8: "QLinearConv QLinearMatMul",
}
"""Inputs that every version of an operator needs, where they are not one."""

_LEAST: Final = {op: count for count, ops in _AT_LEAST.items() for op in ops.split()}


def least_inputs(op: str) -> int:
    """Give the fewest inputs that an operator with a formula can have, in any operator set."""
    return _LEAST.get(op, 1)
