"""`portlint fit`: whether a model fits a machine, and what bounds it there."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portlint.cli.check import is_terminal, targets_of
from portlint.cli.errors import UserError, friendly

if TYPE_CHECKING:
    from portlint.fit.architecture import Model
    from portlint.fit.assess import Load
    from portlint.fit.dtypes import Dtype
    from portlint.fit.products import Product
    from portlint.fit.report import Report
    from portlint.target import Target

_MOST = 10**9
"""the largest count that an option takes"""
_LEAST = 1e-9
"""what an option that must be above 0 takes at least: what divides by it stays finite"""
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def _number(
    *, least: float = 0, exclusive: bool = True, most: float = 1e18, suffixes: bool = False
) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    """A callback that reads a number between bounds; with `suffixes`, 7B and 350M as well."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        if value is None:
            return None
        text = value.strip().lower()
        factor = _SUFFIXES.get(text[-1:], 1.0) if suffixes else 1.0
        try:
            number = float(text[:-1] if factor != 1 else text) * factor
        except ValueError:
            raise click.BadParameter(f"{value!r} is not a number.", ctx, param) from None
        low = number < max(least, _LEAST) if exclusive else number < least
        if not math.isfinite(number) or low or number > most:
            words = f"{'greater than' if exclusive else 'at least'} {least:g} and at most {most:g}"
            raise click.BadParameter(f"{value} is not a number {words}.", ctx, param)
        return number

    return read


def _count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A callback that reads a count."""
    if value is None:
        return None
    text = value.strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= _MOST and len(text) <= 20):
        raise click.BadParameter(f"{value!r} is not a whole number from 1 to {_MOST:,}.", ctx, param)
    return int(text)


@click.command(short_help="Say whether a model fits a machine, and what bounds it.")
@click.option(
    "--target",
    "-t",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Machine; repeatable. 'portlint target' lists them.",
)
@click.option("--product", "names", multiple=True, metavar="NAME", help="Only this product of the targets; repeatable.")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A Hugging Face config.json that describes the model; the options override it.",
)
@click.option("--params", callback=_number(suffixes=True), metavar="NUMBER", help="Parameters: 7e9 or 7B.")
@click.option(
    "--active-params",
    callback=_number(suffixes=True),
    metavar="NUMBER",
    help="Those that one token meets, in a mixture of experts.",
)
@click.option("--weight-dtype", metavar="DTYPE", help="How weights are stored: bf16, fp8, int4 ...")
@click.option("--layers", callback=_count, metavar="N", help="Transformer layers.")
@click.option(
    "--heads", callback=_count, metavar="N", help="Query heads; with them, attention's own arithmetic is counted."
)
@click.option("--kv-heads", callback=_count, metavar="N", help="Key and value heads.")
@click.option("--head-dim", callback=_count, metavar="N", help="Numbers in a head.")
@click.option("--hidden", callback=_count, metavar="N", help="Hidden size; the devices' exchange depends on it.")
@click.option("--kv-dtype", metavar="DTYPE", help="How the KV cache is stored  [bf16].")
@click.option("--compute-dtype", metavar="DTYPE", help="In which products are taken  [as weights are stored].")
@click.option(
    "--context",
    callback=_count,
    metavar="N",
    default="4096",
    help="Tokens of each sequence, and of the prompt  [4096].",
)
@click.option("--concurrency", callback=_count, metavar="N", default="1", help="Sequences at once  [1].")
@click.option("--training", is_flag=True, help="Train with Adam in mixed precision, in place of inference.")
@click.option(
    "--overhead-gb",
    callback=_number(exclusive=False),
    metavar="NUMBER",
    default="0",
    help="GB on each device beside weights and cache  [0].",
)
@click.option(
    "--offload",
    callback=_number(exclusive=False, most=1),
    metavar="NUMBER",
    default="0",
    help="Share of the weights on the host  [0].",
)
@click.option(
    "--host-gb-s",
    callback=_number(),
    metavar="NUMBER",
    default="64",
    help="GB/s of the host link  [64, PCIe 5.0 x16 one way].",
)
@click.option(
    "--tensor-parallel", callback=_count, metavar="N", help="Devices that share the model  [the fewest that fit]."
)
@click.option(
    "--link-gb-s", callback=_number(), metavar="NUMBER", help="GB/s of a device's link to the others, one way."
)
@click.option(
    "--latency-us",
    callback=_number(exclusive=False),
    metavar="NUMBER",
    default="0",
    help="Microseconds that a collective waits  [0].",
)
@click.option(
    "--price", "prices", multiple=True, metavar="NAME=PRICE", help="Price of a product for an hour; repeatable."
)
@click.option(
    "--output-format", type=click.Choice(("full", "json")), default="full", help="On standard output  [full]."
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with figures, too.")
@click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", help="Colours in the full report."
)
@friendly
def fit(
    targets: tuple[str, ...],
    names: tuple[str, ...],
    prices: tuple[str, ...],
    output_format: str,
    html: Path | None,
    color: str,
    **options: Any,
) -> None:
    """Say whether a model fits each product of a target, on how many devices, and what bounds it there.

    All times are floors and all rates ceilings, from the memory, bandwidth and dense peak that the target's profile
    cites. The exit status is 1 if a target has no product that is known to fit.
    """
    from portlint.config import load as configured
    from portlint.fit.assess import assess, choices
    from portlint.fit.report import Report

    machines = targets_of(targets or configured(Path.cwd()).target)
    model = _model(options)
    load = _load(options, model)
    chosen = _products(machines, names)
    priced = _prices(prices, [product.name for product in chosen])
    answers = tuple(assess(model, load, product) for product in chosen)
    kept = {product.target for product in chosen}
    report = Report(
        model,
        load,
        tuple(machine.name for machine in machines if machine.name in kept),
        answers,
        choices(answers, load, priced),
    )
    if html is not None:
        _write_page(report, html)
    _echo(report, output_format, color)
    sys.exit(0 if report.fits else 1)


def _model(options: dict[str, Any]) -> Model:
    """The model of the configuration file and the options; the options win."""
    import msgspec

    from portlint.fit.architecture import Model, read

    file, params, active = options["file"], options["params"], options["active_params"]
    if file is not None:
        model = read(file, params)
    elif params is None:
        raise UserError("how large is the model? Give --params, such as --params 7e9, or --config config.json.")
    else:
        model = Model(params, "given", params)
    if active is not None:
        if active > model.parameters:
            raise UserError(f"--active-params {active:g} are more than the model's {model.parameters:g} parameters.")
        model = msgspec.structs.replace(model, active_parameters=active, experts=None)
    said = {key: options[key] for key in ("layers", "heads", "kv_heads", "head_dim", "hidden") if options[key]}
    model = msgspec.structs.replace(model, **said)
    if said.keys() & {"kv_heads", "head_dim"} and model.kv_heads and model.head_dim:
        kv_values = 2 * model.kv_heads * model.head_dim
        model = msgspec.structs.replace(model, kv_values=kv_values, attention_dim=model.head_dim)
    if options["training"]:
        return model
    missing = [f"--{key.replace('_', '-')}" for key in ("layers", "kv_heads", "head_dim") if not getattr(model, key)]
    if missing:
        raise UserError(
            f"the KV cache depends on {', '.join(missing)}: give {'it' if len(missing) == 1 else 'them'},"
            " or --config config.json, or --training."
        )
    if model.heads and model.kv_heads and model.heads % model.kv_heads:
        raise UserError(f"--kv-heads {model.kv_heads} do not divide the {model.heads} query heads (--heads).")
    return model


def _load(options: dict[str, Any], model: Model) -> Load:
    """What the model is asked to do."""
    from portlint.fit.assess import Load
    from portlint.fit.ledger import splits_heads

    training, degree = options["training"], options["tensor_parallel"]
    word = options["weight_dtype"] or model.dtype or ("bf16" if training else None)
    if word is None:
        raise UserError("how are the weights stored? Give --weight-dtype, such as --weight-dtype bf16.")
    weights = _dtype("--weight-dtype", word)
    if degree and not training and model.kv_heads and not splits_heads(model.kv_heads, degree, model.heads):
        heads = f" and {model.heads} query heads" if model.heads else ""
        raise UserError(f"--tensor-parallel {degree} does not split {model.kv_heads} KV heads{heads} evenly.")
    if training and options["offload"]:
        raise UserError("--offload is for weights in inference; it does not go with --training.")
    if options["latency_us"] and not options["link_gb_s"]:
        raise UserError("--latency-us needs --link-gb-s: the devices' exchange is counted where their link is known.")
    if options["link_gb_s"] and not model.hidden:
        raise UserError("--link-gb-s needs --hidden: what devices exchange depends on the hidden size.")
    return Load(
        weights=weights,
        kv=_dtype("--kv-dtype", options["kv_dtype"] or "bf16"),
        compute=_dtype("--compute-dtype", options["compute_dtype"] or ("bf16" if training else weights.name)),
        context_tokens=options["context"],
        concurrency=options["concurrency"],
        training=training,
        overhead_bytes=options["overhead_gb"] * 1e9,
        offload=options["offload"],
        host_bytes_s=options["host_gb_s"] * 1e9,
        tensor_parallel=degree,
        link_bytes_s=options["link_gb_s"] and options["link_gb_s"] * 1e9,
        latency_s=options["latency_us"] * 1e-6,
    )


def _dtype(option: str, name: str) -> Dtype:
    from portlint.fit.dtypes import UnknownDtype, dtype

    try:
        return dtype(name)
    except UnknownDtype as error:
        raise UserError(f"{option}: {error}") from error


def _products(machines: Sequence[Target], names: Sequence[str]) -> tuple[Product, ...]:
    """The products of the targets, or those of them that are named."""
    from portlint.fit.products import products

    every = [product for machine in machines for product in products(machine)]
    for machine in machines:
        if not any(product.target == machine.name for product in every):
            raise UserError(f"the profile of '{machine.name}' names no product, so there is nothing to fit into.")
    for name in names:
        _known("--product", name, [product.name for product in every])
    wanted = {name.lower() for name in names}
    return tuple(product for product in every if not wanted or product.name.lower() in wanted)


def _prices(texts: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Prices by the product's name."""
    found = {}
    for text in texts:
        name, equals, price = text.rpartition("=")
        if not equals:
            raise UserError(f"--price is '{text}', not NAME=PRICE, such as 'H200=4.00'.")
        known = _known("--price", name.strip(), names)
        try:
            value = float(price)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise UserError(f"--price: '{price}' is not a price per hour above 0.")
        found[known] = value
    return found


def _known(option: str, name: str, names: Sequence[str]) -> str:
    """The product of that name, in whatever case it is written."""
    by_case = {known.lower(): known for known in names}
    if name.lower() not in by_case:
        from difflib import get_close_matches

        near = [known for known in names if name.lower() in known.lower()]
        near = near or [by_case[match] for match in get_close_matches(name.lower(), by_case)]
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UserError(f"{option}: the targets have no product '{name}'.{hint} They have {', '.join(names)}.")
    return by_case[name.lower()]


def _echo(report: Report, output_format: str, color: str) -> None:
    import shutil

    from portlint import __version__
    from portlint.fit import describe, text

    if output_format == "json":
        written = describe.render(report, __version__)
    else:
        colored = color == "always" or (color == "auto" and is_terminal())
        written = text.render(report, color=colored, width=shutil.get_terminal_size((100, 24)).columns)
    sys.stdout.buffer.write(written.encode())
    sys.stdout.buffer.flush()


def _write_page(report: Report, file: Path) -> None:
    from portlint import __version__
    from portlint.fit import page

    try:
        file.write_text(page.render(report, __version__), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--html: cannot write {file}: {error.strerror}") from error
