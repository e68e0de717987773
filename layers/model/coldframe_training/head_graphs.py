"""The graphs of heads, centroids and estimator: `.venv-build/bin/python -m coldframe_training.head_graphs`.

They hold no weights: those of a model are inputs, so the same small files serve every model. The command
writes them into `coldframe.graphs`; a test compares what is there with what this module says.

A product is weights times columns, one column for each text. onnxruntime computes these one by one, so that
the bits of a text's answer do not depend on its neighbours. It would join rows to one larger product.
Exponentials of a head's own are computed in float64: in float32 their bits may depend on a row's place.
"""

from pathlib import Path

from coldframe_training.files.paths import ROOT

GRAPHS = ROOT / "layers" / "shared" / "python" / "coldframe" / "graphs"

_PREAMBLE = '<ir_version: 8, opset_import: ["" : 17]>\n'

_LOGREG = """
logreg (float[n,d] embeddings, float[k,d] weight, float[k] bias) => (float[n,k] probabilities) {
  second = Constant <value_ints = [2]> ()
  columns = Unsqueeze (embeddings, second)
  products = MatMul (weight, columns)
  flat = Squeeze (products, second)
  logits = Add (flat, bias)
  probabilities = Softmax <axis = -1> (logits)
}
"""

_MLP = """
mlp (float[n,d] embeddings, float[h,d] weight_1, float[h] bias_1, float[k,h] weight_2, float[k] bias_2)
    => (float[n,k] probabilities) {
  second = Constant <value_ints = [2]> ()
  columns = Unsqueeze (embeddings, second)
  products_1 = MatMul (weight_1, columns)
  flat_1 = Squeeze (products_1, second)
  sums_1 = Add (flat_1, bias_1)
  hidden = Relu (sums_1)
  hidden_columns = Unsqueeze (hidden, second)
  products_2 = MatMul (weight_2, hidden_columns)
  flat_2 = Squeeze (products_2, second)
  logits = Add (flat_2, bias_2)
  probabilities = Softmax <axis = -1> (logits)
}
"""

# Binary trees laid end to end; a node's left child is the node after it, and a leaf has the feature -1.
# They are cut along the discriminant directions of the embedding. The loop has an end, so that a damaged tree
# cannot keep it for ever.
_TREE_INPUTS = (
    "float[n,d] embeddings, double[p,d] projection, int16[m] feature, float[m] threshold, int32[m] right,"
    " int32[t] roots"
)
_WALK = """
  first = Constant <value_ints = [1]> ()
  second = Constant <value_ints = [2]> ()
  exact = Cast <to = 11> (embeddings)
  columns = Unsqueeze (exact, second)
  products = MatMul (projection, columns)
  flat = Squeeze (products, second)
  projected = Cast <to = 1> (flat)
  texts = Shape <start = 0, end = 1> (embeddings)
  trees = Shape (roots)
  shape = Concat <axis = 0> (texts, trees)
  start = Expand (roots, shape)
  limit = Constant <value = int64 {10000}> ()
  goes = Constant <value = bool {1}> ()
  node = Loop <body = step (int64 round, bool went, int32[n,t] at) => (bool again, int32[n,t] next) {
      narrow = Gather (feature, at)
      cut = Cast <to = 7> (narrow)
      zero = Constant <value_int = 0> ()
      is_inner = GreaterOrEqual (cut, zero)
      value = GatherElements <axis = 1> (projected, cut)
      border = Gather (threshold, at)
      is_left = LessOrEqual (value, border)
      one = Constant <value = int32 {1}> ()
      left = Add (at, one)
      other = Gather (right, at)
      child = Where (is_left, left, other)
      next = Where (is_inner, child, at)
      flags = Cast <to = 6> (is_inner)
      highest = ReduceMax <keepdims = 0> (flags)
      again = Cast <to = 9> (highest)
  }> (limit, goes, start)
  reached = Gather (right, node)
"""

_RF = f"""
rf ({_TREE_INPUTS}, uint16[l,k] leaf) => (float[n,k] probabilities) {{{_WALK}
  frequencies = Gather (leaf, reached)
  wide = Cast <to = 6> (frequencies)
  sums = ReduceSum <keepdims = 0> (wide, first)
  total = ReduceSum <keepdims = 1> (sums, first)
  sums_exact = Cast <to = 11> (sums)
  total_exact = Cast <to = 11> (total)
  shares = Div (sums_exact, total_exact)
  probabilities = Cast <to = 1> (shares)
}}
"""

_HGB = f"""
hgb ({_TREE_INPUTS}, float[l] leaf, double[k] baseline, int64[t] label)
    => (float[n,k] probabilities) {{{_WALK}
  narrow_values = Gather (leaf, reached)
  values = Cast <to = 11> (narrow_values)
  labels = Shape (baseline)
  sums_shape = Concat <axis = 0> (texts, labels)
  nothing = ConstantOfShape <value = double[1] {{0.0}}> (sums_shape)
  values_shape = Shape (values)
  owner = Expand (label, values_shape)
  sums = ScatterElements <axis = 1, reduction = "add"> (nothing, owner, values)
  raw = Add (sums, baseline)
  minus = Neg (raw)
  power = Exp (minus)
  one_exact = Constant <value = double {{1.0}}> ()
  under = Add (one_exact, power)
  positive = Div (one_exact, under)
  total = ReduceSum <keepdims = 1> (positive, first)
  shares = Div (positive, total)
  probabilities = Cast <to = 1> (shares)
}}
"""

_CENTROIDS = """
centroids (float[n,d] embeddings, float[k,d] directions) => (float[n] strangeness) {
  second = Constant <value_ints = [2]> ()
  columns = Unsqueeze (embeddings, second)
  products = MatMul (directions, columns)
  cosines = Squeeze (products, second)
  nearest = ReduceMax <axes = [1], keepdims = 0> (cosines)
  one = Constant <value_float = 1.0> ()
  strangeness = Sub (one, nearest)
}
"""

# A running sum takes its terms in order, which plain sums of onnxruntime do not promise.
_ESTIMATOR = """
estimator (int16[v,k] weights, int64[t] tokens, double[t] factors) => (double[k] sums) {
  first = Constant <value_ints = [1]> ()
  narrow = Gather (weights, tokens)
  rows = Cast <to = 11> (narrow)
  column = Unsqueeze (factors, first)
  scaled = Mul (rows, column)
  zero = Constant <value_int = 0> ()
  running = CumSum (scaled, zero)
  last = Constant <value_int = -1> ()
  sums = Gather <axis = 0> (running, last)
}
"""

_SOURCES = {
    "logreg": _LOGREG,
    "mlp": _MLP,
    "rf": _RF,
    "hgb": _HGB,
    "centroids": _CENTROIDS,
    "estimator": _ESTIMATOR,
}


def head_graphs() -> dict[str, bytes]:
    """The content of each graph's file, by its name without the ending."""
    import onnx

    graphs = {}
    for name, source in _SOURCES.items():
        model = onnx.parser.parse_model(_PREAMBLE + source)
        onnx.checker.check_model(model, full_check=True)
        graphs[name] = model.SerializeToString(deterministic=True)
    return graphs


def write_head_graphs(folder: Path = GRAPHS) -> None:
    """Writes each graph into `folder`."""
    for name, content in head_graphs().items():
        (folder / f"{name}.onnx").write_bytes(content)


if __name__ == "__main__":
    write_head_graphs()
