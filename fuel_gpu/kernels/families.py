"""Which family of kernels an operator belongs to."""

from typing import Final, Literal

Family = Literal[
    "conv",
    "matmul",
    "attention",
    "recurrent",
    "elementwise",
    "normalisation",
    "softmax",
    "pooling",
    "reduction",
    "movement",
    "scatter",
    "resample",
    "fourier",
    "sort",
    "random",
    "quantised",
    "control",
    "host",
    "unknown",
]
"""A family's kernels share backends, compute dtypes and a claim.

movement   copies, choices and casts: no rounding beyond the one that the operator itself asks for
scatter    writes to places that data names
sort       orders or chooses, so that every step waits for a comparison
quantised  integer products and the scaling around them
control    If, Loop, Scan: the host decides which body runs next
host       sequences, optionals, strings, decoders and trees: they live in host memory
unknown    an operator that is not known here
"""

MEMBERS: Final[dict[Family, str]] = {
    "conv": "Conv ConvTranspose DeformConv CausalConvWithState com.microsoft.FusedConv",
    "matmul": """
        MatMul Gemm Einsum ai.onnx.ml.LinearRegressor ai.onnx.ml.LinearClassifier
        com.microsoft.FusedMatMul com.microsoft.FusedGemm com.microsoft.TransposeMatMul
        com.microsoft.FusedMatMulActivation com.microsoft.GemmFastGelu""",
    "attention": """
        Attention LinearAttention com.microsoft.Attention
        com.microsoft.MultiHeadAttention com.microsoft.GroupQueryAttention""",
    "recurrent": "LSTM GRU RNN",
    "elementwise": """
        Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr
        BitwiseXor Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater
        GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean
        Min Mish Mod Mul Neg Not Or PRelu ParametricSoftplus Pow Range Reciprocal Relu
        RotaryEmbedding Round ScaledTanh Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt
        Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Xor Affine ImageScaler
        BlackmanWindow HammingWindow HannWindow
        ai.onnx.ml.Binarizer ai.onnx.ml.Imputer ai.onnx.ml.Scaler
        com.microsoft.BiasAdd com.microsoft.BiasDropout com.microsoft.BiasGelu
        com.microsoft.BiasSplitGelu com.microsoft.FastGelu com.microsoft.Gelu
        com.microsoft.QuickGelu com.microsoft.RotaryEmbedding""",
    "normalisation": """
        BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization
        LpNormalization MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization
        ai.onnx.ml.Normalizer com.microsoft.EmbedLayerNormalization com.microsoft.GroupNorm
        com.microsoft.SimplifiedLayerNormalization com.microsoft.SkipGroupNorm
        com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization""",
    "softmax": """
        Hardmax LogSoftmax NegativeLogLikelihoodLoss Softmax SoftmaxCrossEntropyLoss""",
    "pooling": """
        AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool
        MaxUnpool RoiAlign""",
    "reduction": """
        ArgMax ArgMin CumProd CumSum Det ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
        ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare""",
    "movement": """
        BitCast Cast CastLike CenterCropPad Col2Im Concat Constant ConstantOfShape DepthToSpace
        Dropout Expand EyeLike Flatten Gather GatherElements GatherND Identity OneHot Pad Reshape
        ReverseSequence Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
        Where""",
    "scatter": "Scatter ScatterElements ScatterND TensorScatter",
    "resample": "AffineGrid GridSample Resize Upsample",
    "fourier": "DFT MelWeightMatrix STFT",
    "sort": "Compress NonMaxSuppression NonZero TopK Unique",
    "random": """
        Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike""",
    "quantised": """
        ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul
        QuantizeLinear com.microsoft.DequantizeLinear com.microsoft.DynamicQuantizeMatMul
        com.microsoft.MatMulIntegerToFloat com.microsoft.MatMulNBits com.microsoft.QAttention
        com.microsoft.QGemm com.microsoft.QLinearAdd com.microsoft.QLinearAveragePool
        com.microsoft.QLinearConcat com.microsoft.QLinearGlobalAveragePool
        com.microsoft.QLinearLeakyRelu com.microsoft.QLinearMul com.microsoft.QLinearSigmoid
        com.microsoft.QLinearSoftmax com.microsoft.QuantizeLinear""",
    "control": "If Loop Scan SequenceMap",
    "host": """
        ConcatFromSequence ImageDecoder Optional OptionalGetElement OptionalHasElement
        RegexFullMatch SequenceAt SequenceConstruct SequenceEmpty SequenceErase
        SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer StringSplit
        TfIdfVectorizer ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.CategoryMapper
        ai.onnx.ml.FeatureVectorizer ai.onnx.ml.LabelEncoder ai.onnx.ml.OneHotEncoder
        ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor ai.onnx.ml.TreeEnsemble
        ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor""",
}
"""Operators by family, separated by blanks."""

FAMILY: Final[dict[str, Family]] = {
    op: family for family, ops in MEMBERS.items() for op in ops.split()
}
"""Family by operator; an operator of another domain than ONNX's own carries its domain."""


_CHOOSE = """
    Abs And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Clip Equal Floor
    GlobalMaxPool Greater GreaterOrEqual Hardmax IsInf IsNaN Less LessOrEqual Max MaxPool
    MaxRoiPool MaxUnpool Min Mod Neg Not Or ReduceMax ReduceMin Relu Round Sign ThresholdedRelu Xor
    ai.onnx.ml.Binarizer ai.onnx.ml.Imputer"""

CHOOSING: Final = frozenset(_CHOOSE.split())
"""Operators of arithmetic families that only choose or mask: they round nothing themselves."""


def family_of(op: str) -> Family:
    """Give an operator's family; ``unknown`` if it is not listed."""
    return FAMILY.get(op, "unknown")
