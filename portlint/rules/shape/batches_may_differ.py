"""Batches are made whose shapes differ from step to step.

Padding to the longest row, collators that do so by default, `pad_sequence`, and a training loader that keeps its smaller
last batch give inputs of many shapes. A graph compiler starts again for each new one, in the middle of an epoch.

## Exceptions
Padding to a fixed length or to a multiple, loaders with `drop_last=True`, with a batch sampler of their own or for
evaluation, loaders that accelerate prepares (it fills the last batch), functions that pad further or put into buckets, and tests are silent.

## Fix safety
Unsafe: with `drop_last=True` the rows of a batch that is not full are left out. Padding is left, and so are loaders for tests.

## References
https://docs.habana.ai/en/latest/PyTorch/Model_Optimization_PyTorch/Dynamic_Shapes.html
https://github.com/pytorch/xla/blob/master/docs/source/perf/recompilation.md
"""

from __future__ import annotations

import re

from portlint.rule import Hit, Hits, Node, Rule, add_argument, regex, replace, words_of

rule = Rule(
    assumes={"shape.dynamic": "native"},
    message="'{text}' {why}; {target} has {fact}.",
    remedy={
        "*": 'Pad to a fixed length (`padding="max_length"`), to a multiple (`pad_to_multiple_of`) or to one of a few buckets, and give the training loader `drop_last=True`.',
    },
)

TOKENIZERS = regex(r"tokenizer|tokenize$|processor|feature_extractor|^pad$|encode_plus$", re.IGNORECASE)
COLLATORS = ("DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification")
LATER = regex(r"pad_to_multiple|bucket|max_len|max_seq|round_up|multi(ple)?_of|max_position", re.IGNORECASE)
EVALUATION = frozenset("test testing tests val valid validation validate eval evaluate evaluation dev predict".split())
"""words in the names of data of which no row may be left out"""
LONGEST = "pads to the longest row of each batch"


@rule.python(
    "(call arguments: (argument_list (keyword_argument name: (identifier) @_name value: (_) @how) @padding"
    ' (#eq? @_name "padding"))) @call'
)
def padded(call: Node, padding: Node, how: Node) -> Hits:
    if how.constant not in (True, "longest") or not TOKENIZERS.search(call.last_name) or not _is_for_torch(call):
        return
    if call.argument(None, "pad_to_multiple_of") is None and not _pads_later(call):
        yield Hit(padding, words={"why": LONGEST})


@rule.calls(*(f"transformers.{name}" for name in COLLATORS))
def collated(call: Node) -> Hits:
    given = call.argument(None, "padding")
    if call.argument(None, "pad_to_multiple_of") is not None or _unpacks(call) or not _is_for_torch(call):
        return
    if given is None or given.constant in (True, "longest"):
        yield Hit(call["function"], words={"why": LONGEST})


@rule.calls("torch.nn.utils.rnn.pad_sequence")
def sequences(call: Node) -> Hits:
    if call.role("host-file") or _pads_later(call):
        return
    function = call.function
    calls = function["body"].walk("call") if function is not None else ()
    if not any(one.name == call.name and one.start < call.start for one in calls):  # one a function says it
        yield Hit(call["function"], words={"why": LONGEST})


@rule.calls("torch.utils.data.DataLoader")
def loader(call: Node) -> Hits:
    shuffle, size, drop = (call.argument(None, name) for name in ("shuffle", "batch_size", "drop_last"))
    if shuffle is None or shuffle.constant is not True or _unpacks(call) or call.role("host-file"):
        return
    if size is None or size.constant == 1 or call.argument(None, "batch_sampler") is not None:
        return
    if (drop is None or drop.constant is False) and not _fills_batches(call):
        edits = (replace(drop, "True"),) if drop is not None else (add_argument(call, "drop_last=True"),)
        words = {"why": "keeps a smaller last batch"}
        yield Hit(call["function"], words=words, edits=() if _is_for_evaluation(call) else edits)


def _is_for_evaluation(call: Node) -> bool:
    """Whether the data set of a loader, the loader or the function around it is called that of a test: all rows count."""
    assignment = next(call.ancestors("assignment"), None)
    target = assignment.get("left") if assignment is not None else None
    named = [call.argument(0, "dataset"), target, call.function["name"] if call.function is not None else None]
    return any(one is not None and not EVALUATION.isdisjoint(words_of(one.text)) for one in named)


def _fills_batches(call: Node) -> bool:
    """Whether a library prepares the loader that repeats samples to fill the last batch."""
    return call.source.imports("accelerate") or call.source.imports("optimum.habana")


def _unpacks(call: Node) -> bool:
    return any(True for one in call["arguments"].children if one.type == "dictionary_splat")


def _is_for_torch(call: Node) -> bool:
    """Whether the result is for tensors at all: the file works with torch, and not for a test."""
    return call.source.imports("torch") and not call.role("host-file")


def _pads_later(call: Node) -> bool:
    """Whether the function around a call pads further, or knows a fixed length."""
    function = call.function
    return function is not None and any(LATER.search(one.text) for one in function.walk("identifier"))
