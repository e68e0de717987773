"""The tables of a run, from its raw file alone."""

from coldframe_bench.records.raw_files import Fact, Results
from coldframe_bench.records.tables import table

_GOAL_IN_PROCESS, _GOAL_HTTP = 3e6, 1.5e6


def gpu_table(results: Results) -> str:
    """Tokens per second of everything that was measured, beside the bound of the device's arithmetic."""
    facts = {(fact.name, fact.subject): fact for fact in results.of(Fact)}

    def cell(name: str, subject: str, form: str) -> str:
        value = facts[name, subject].value if (name, subject) in facts else None
        return "–" if value is None else format(value, form)

    bound = sum(results.facts("bound_tokens_per_s", "gpu"))
    rows = [
        (
            fact.subject,
            f"{fact.value / 1e6:.3f}",
            f"{fact.value / bound:.1%}" if bound else "–",
            cell("busy", fact.subject, ".0%"),
            cell("power_w", fact.subject, ".0f"),
        )
        for (name, _), fact in facts.items()
        if name == "tokens_per_s" and fact.value is not None
    ]
    head = "what | million tokens/s | of the bound | GPU busy | watts"
    notes = [f"{fact.subject}: {fact.text}" for fact in facts.values() if fact.text]
    notes += [
        f"{fact.subject}: {fact.name} {fact.value:,.6g}"
        for (name, _), fact in facts.items()
        if fact.value is not None and name not in ("tokens_per_s", "busy", "power_w")
    ]
    return f"{table(head, rows)}\n" + "".join(f"- {note}\n" for note in [*notes, *_ratios(results)])


def _ratios(results: Results) -> list[str]:
    """The best of each side by side: packed to padded, and ours to the peer's."""
    ratios = {
        fact.subject: fact.value for fact in results.of(Fact) if fact.name == "tokens_per_s" and fact.value
    }

    def best(*words: str) -> float:
        return max(
            (rate for name, rate in ratios.items() if all(word in name for word in words)), default=0.0
        )

    lines = []
    for order in ("arrival", "sorted"):
        packed, padded = best("packed", order), best("padded", order)
        if packed and padded:
            lines.append(f"packed is {packed / padded:.2f} × padded, rows in order of {order}")
    ours, peer = best("texts, "), best("sentence-transformers")
    if ours and peer:
        lines.append(f"texts to embeddings: {ours / peer:.2f} × sentence-transformers in fp16")
    for name, words, goal in (
        ("in process", "pass, ", _GOAL_IN_PROCESS),
        ("over HTTP", "http, ", _GOAL_HTTP),
    ):
        if rate := best(words):
            lines.append(f"goal {name}, {goal:,.0f} tokens/s: {'met' if rate >= goal else '**missed**'}")
    return lines
