"""The estimator as plain SQL inside DuckDB: tables of tokens and weights, and a macro that joins them.

Queries run no Python. The macro answers ASCII texts, for encoders with a lower-case WordPiece vocabulary,
whose
tokens SQL can find. Sums are taken in another order than in `Estimator`: probabilities differ by
rounding, by at most 1e-12.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from coldframe.config import load_settings
from coldframe.errors import Invalid
from coldframe.model.bundle import EncoderFacts, EstimatorFacts, load_pair
from coldframe.model.estimator import UNTEMPERED, Estimator
from coldframe.model.files import TOKENIZER, encoder_folder, model_folder, read_file, served_models
from coldframe.model.wordpiece import SPECIAL_TOKENS
from coldframe.pipeline.models import chosen

_PIECES, _WEIGHTS, _IDF, _LABELS = (
    "estimator_pieces",
    "estimator_weights",
    "estimator_idf",
    "estimator_labels",
)

_IS_PLAIN = f"""regexp_full_match(text, '[\\x00-\\x7F]*', 's')
    AND NOT regexp_matches(text, '{"|".join(re.escape(token) for token in SPECIAL_TOKENS)}')"""
"""SQL for `is_plain`: BERT splits other texts by rules that this module does not implement."""


def create_estimator(
    connection: duckdb.DuckDBPyConnection,
    folder: Path | str | None = None,
    model: str | None = None,
    prefix: str = "",
) -> None:
    """Adds the table macro `estimate(table)`: a row (id, topic, probability, sure) for each (id, text).

    A text that is null, not ASCII, or contains a token's name such as [SEP] gets nulls. Where `sure` is
    true, `topic` is the answer of `auto`.
    folder: of encoders and models; default: COLDFRAME_MODEL_DIR.
    model: a name; default: the first of COLDFRAME_MODELS, else the folder's default model.
    prefix: of the macro and of its tables.
    Raises Invalid for a model whose tokens SQL cannot find, and a BundleError.
    """
    if not re.fullmatch(r"\w*", prefix):
        raise Invalid(f"The prefix {prefix!r} is not part of a name. Use letters, digits and _.")
    settings = chosen(load_settings(os.environ), folder, model)
    model_dir = settings.model_dir
    name = served_models(model_dir, settings.models)[0]
    manifest, built = load_pair(model_dir, name)
    facts = built.facts
    if facts.tokenizer != "wordpiece" or not facts.lower_case:
        raise Invalid(
            f"The encoder {built.name!r} has no lower-case WordPiece vocabulary, which SQL needs"
            " for its tokens. Use `register` instead."
        )
    vocabulary = json.loads(read_file(encoder_folder(model_dir, built.name), TOKENIZER))["model"]["vocab"]
    estimator = Estimator(model_folder(model_dir, name), manifest.estimator)
    tables = {
        _PIECES: pa.table({"token": list(vocabulary), "id": list(vocabulary.values())}),
        _IDF: pa.table({"id": range(len(estimator.idf)), "idf": list(estimator.idf)}),
        _WEIGHTS: _weights(estimator, manifest.estimator),
        _LABELS: pa.table(
            {"place": range(len(manifest.labels)), "label": manifest.labels}
            | {"bias": manifest.estimator.bias, "scale": manifest.estimator.scales}
        ),
    }
    for table, content in tables.items():
        connection.register("estimator_content", content)
        connection.execute(f'CREATE OR REPLACE TABLE "{prefix}{table}" AS FROM estimator_content')
        connection.unregister("estimator_content")
    connection.execute("".join(_macro(prefix, facts, manifest.estimator, vocabulary["[UNK]"])))


def _weights(estimator: Estimator, facts: EstimatorFacts) -> pa.Table:
    """(token, label, weight) of weights that are not zero."""
    labels = len(facts.bias)
    entries = [(at // labels, at % labels, weight) for at, weight in enumerate(estimator.weights) if weight]
    ids, places, weights = zip(*entries, strict=True)
    return pa.table({"id": ids, "place": places, "weight": pa.array(weights, pa.float64())})


def _macro(prefix: str, facts: EncoderFacts, estimator: EstimatorFacts, unknown: int) -> Iterator[str]:
    alone, _ = estimator.answer_temperatures or UNTEMPERED
    pieces, weights, idf, labels = (f'"{prefix}{name}"' for name in (_PIECES, _WEIGHTS, _IDF, _LABELS))
    yield f"""
CREATE OR REPLACE MACRO "{prefix}estimate"(given) AS TABLE
WITH RECURSIVE rows AS (SELECT row_number() OVER () AS row, id, text FROM query_table(given)),
-- BERT drops control characters and cuts at white space and punctuation.
words AS (
  SELECT row, unnest(found) AS word, generate_subscripts(found, 1) AS place FROM (
    SELECT row, regexp_extract_all(
      lower(regexp_replace(text, '[\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x7F]', '', 'g')),
      '[a-z0-9]+|[!-/:-@\\[-`{{-~]') AS found
    FROM rows WHERE {_IS_PLAIN})),
-- WordPiece: the longest piece that the rest of the word begins with, again and again.
cuts AS (
  SELECT DISTINCT word, 0 AS cut, NULL::BIGINT AS token FROM words WHERE length(word) <= 100
  UNION ALL
  SELECT word, cut + max(size), arg_max(found, size) FROM (
    SELECT cuts.word, cuts.cut, sizes.size, vocabulary.id AS found
    FROM cuts, unnest(range(1, length(cuts.word) - cuts.cut + 1)) AS sizes(size), {pieces} AS vocabulary
    WHERE vocabulary.token = CASE WHEN cuts.cut = 0 THEN '' ELSE '##' END
      || substr(cuts.word, cuts.cut + 1, sizes.size))
  GROUP BY word, cut),
whole AS (SELECT word FROM cuts GROUP BY word HAVING max(cut) = length(word)),
tokens AS (
  SELECT row, coalesce(token, {unknown}) AS token,
    row_number() OVER (PARTITION BY row ORDER BY place, cut) AS place
  FROM words LEFT JOIN (SELECT * FROM cuts SEMI JOIN whole USING (word) WHERE token IS NOT NULL)
    USING (word)),
"""  # noqa: S608
    yield f"""
terms AS (
  SELECT row, token, (1 + ln(count(*))) * idf AS weight, idf
  FROM tokens JOIN {idf} AS known ON known.id = token
  WHERE place <= {facts.content_tokens * facts.max_windows} GROUP BY row, token, idf),
documents AS (
  SELECT row, sqrt(sum(weight * weight)) AS size,
    count(*) FILTER (idf < {estimator.unseen_idf!r}) >= {estimator.min_tokens} AS known
  FROM terms GROUP BY row),
said AS (
  SELECT row, place, sum(terms.weight * learnt.weight) AS evidence
  FROM terms JOIN {weights} AS learnt ON learnt.id = token GROUP BY row, place),
logits AS (
  SELECT rows.row, place, label, coalesce(known, {estimator.min_tokens} = 0) AS known,
    (coalesce(evidence * scale / size, 0) + bias) / {estimator.temperature!r} AS logit
  FROM rows CROSS JOIN {labels} AS labels LEFT JOIN said USING (row, place) LEFT JOIN documents USING (row)
  WHERE {_IS_PLAIN}),
answers AS (
  SELECT row, arg_max(label, logit) AS topic, 1 / sum(exp((logit - highest) / {alone!r})) AS probability,
    1 / sum(exp(logit - highest)) > {estimator.threshold!r} AND any_value(known) AS sure
  FROM (SELECT *, max(logit) OVER (PARTITION BY row) AS highest FROM logits) GROUP BY row)
SELECT id, topic, probability, sure
FROM rows LEFT JOIN answers USING (row) ORDER BY row
"""  # noqa: S608
