"""Costs of platforms, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coldframe_local.deploy.costs.costs import Costs, Gpu


def table(costs: Costs, rates: Sequence[float]) -> str:
    """USD a month by rate, and from which rate each platform pays."""
    rows = [("USD a month, at texts/s", *[f"{rate:,g}" for rate in rates])]
    rows.append(("lambda, on demand", *[f"{costs.lambda_usd(rate):,.2f}" for rate in rates]))
    rows.append(("containers, always on", *[_containers(costs, rate) for rate in rates]))
    rows += [(f"{gpu.instance}, one {gpu.name}", *[_gpu(gpu, rate) for rate in rates]) for gpu in costs.gpus]
    return _aligned(rows) + "\n" + "\n".join(_pays(costs)) + "\n"


def numbers(costs: Costs, rates: Sequence[float]) -> dict[str, object]:
    """The same by name, for programs. USD a month stand in the order of the rates."""
    container = costs.container
    return {
        "texts_s": rates,
        "lambda_usd": [costs.lambda_usd(rate) for rate in rates],
        "containers_usd": [costs.containers_usd(rate) for rate in rates],
        "container": {"texts_s": container.texts_s, "pays_from_texts_s": costs.container_pays_from},
        "gpus": [
            {
                "name": gpu.name,
                "instance": gpu.instance,
                "month_usd": gpu.month_usd,
                "texts_s": gpu.texts_s,
                "pays_from_texts_s": costs.gpu_pays_from(gpu),
            }
            for gpu in costs.gpus
        ],
    }


def _containers(costs: Costs, rate: float) -> str:
    return f"{costs.containers_usd(rate):,.2f} ({costs.container.count(rate):,})"


def _gpu(gpu: Gpu, rate: float) -> str:
    return f"{gpu.month_usd:,.2f}" if gpu.texts_s is None or rate <= gpu.texts_s else "too many"


def _pays(costs: Costs) -> Iterable[str]:
    planned = costs.container.texts_s
    break_even = costs.container_pays_from
    yield (
        f"A container is planned for {planned:,.0f} texts/s."
        f" It costs less than Lambda from {break_even:,.1f} on."
        if break_even is not None
        else f"A container is planned for {planned:,.0f} texts/s. Lambda costs less even then."
    )
    for gpu in costs.gpus:
        able = "not yet measured" if gpu.texts_s is None else f"{gpu.texts_s:,.0f} texts/s"
        pays = f"{costs.gpu_pays_from(gpu):,.0f} on"
        yield f"One {gpu.name} costs less than such containers from {pays}. What it can do: {able}."


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)],
            ]
        )
        for row in rows
    )
    return "\n".join(lines)
