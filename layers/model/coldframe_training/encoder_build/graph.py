"""The encoder as it is exported: a BERT or XLM-R, rearranged for few and large operations.

The same function of the same weights as the original (`golden.py` checks it):

- query, key and value are one product, and the scale of attention is in its weights;
- rows of a batch have one length, so there is no attention mask;
- position and token-type embeddings are one table;
- pooling and normalisation are inside.
"""

import math

import torch
from optimum.exporters.onnx.config import TextEncoderOnnxConfig
from optimum.utils import NormalizedTextConfig
from torch import Tensor, nn
from transformers import BertConfig, PretrainedConfig, PreTrainedModel

from coldframe_training.encoder_build.encoder_folder import Pooling

INPUT, OUTPUT = "input_ids", "embedding"


class LeanLayer(nn.Module):
    """One transformer layer, post-norm as in Devlin et al. 2018."""

    def __init__(self, original: nn.Module, heads: int) -> None:
        super().__init__()
        self.heads = heads
        dimension = original.attention.self.query.in_features
        self.qkv = _merge_qkv(original.attention.self, 1 / math.sqrt(dimension // heads))
        self.out = original.attention.output.dense
        self.norm_1 = original.attention.output.LayerNorm
        self.up = original.intermediate.dense
        self.down = original.output.dense
        self.norm_2 = original.output.LayerNorm

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        query, key, value = self.qkv(x).split(x.shape[-1], dim=-1)
        by_head = self._by_head
        attention = (by_head(query) @ by_head(key).transpose(2, 3)).softmax(dim=-1)  # (B, h, T, T)
        mixed = (attention @ by_head(value)).transpose(1, 2).reshape(x.shape)
        x = self.norm_1(self.out(mixed) + x)
        return self.norm_2(self.down(nn.functional.gelu(self.up(x))) + x)

    def _by_head(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, h, T, d / h)
        dimension = self.norm_1.normalized_shape[0]
        return x.view(x.shape[0], x.shape[1], self.heads, dimension // self.heads).transpose(1, 2)


class LeanEncoder(PreTrainedModel):
    """Token ids of rows of equal length to embeddings of length 1."""

    config_class = BertConfig

    def __init__(self, original: PreTrainedModel, layers: int | None, pooling: Pooling) -> None:
        """layers: how many of the original's; None for all."""
        super().__init__(original.config)
        self.pooling = pooling
        embeddings = original.embeddings
        positions = embeddings.position_embeddings.weight + embeddings.token_type_embeddings.weight[0]
        positions = positions[first_position(original.config) :]
        self.words = embeddings.word_embeddings
        self.positions = nn.Parameter(positions.detach())
        self.norm = embeddings.LayerNorm
        heads = original.config.num_attention_heads
        self.layers = nn.ModuleList(LeanLayer(layer, heads) for layer in original.encoder.layer[:layers])

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:  # (B, T) -> (B, d)
        x = self.norm(self.words(input_ids) + self.positions[: input_ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        pooled = sum_over_tokens(x) if self.pooling == "mean" else x[:, 0]
        return {OUTPUT: nn.functional.normalize(pooled, dim=-1)}


def first_position(config: PretrainedConfig) -> int:
    """Row of the first token in the table of positions: XLM-R counts them from behind its padding."""
    return config.pad_token_id + 1 if config.model_type == "xlm-roberta" else 0


class LeanOnnxConfig(TextEncoderOnnxConfig):
    """Facts that Optimum needs to export `LeanEncoder`."""

    NORMALIZED_CONFIG_CLASS = NormalizedTextConfig

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {INPUT: {0: "rows", 1: "tokens"}}

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {OUTPUT: {0: "rows"}}


def sum_over_tokens(x: Tensor) -> Tensor:  # (B, T, d) -> (B, d)
    """The mean but for its length, which normalisation sets anyway.

    As a product: onnxruntime's ReduceMean adds up in another order for one row
    than for several, and a row must not depend on its neighbours.
    """
    ones = torch.ones(x.shape[0], 1, x.shape[1])
    return (ones @ x).squeeze(1)


def _merge_qkv(attention: nn.Module, scale: float) -> nn.Linear:
    weights = [attention.query.weight * scale, attention.key.weight, attention.value.weight]
    biases = [attention.query.bias * scale, attention.key.bias, attention.value.bias]
    merged = nn.Linear(weights[0].shape[1], sum(len(weight) for weight in weights))
    merged.weight = nn.Parameter(torch.cat(weights).detach())
    merged.bias = nn.Parameter(torch.cat(biases).detach())
    return merged
