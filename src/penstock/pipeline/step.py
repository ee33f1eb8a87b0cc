"""A step is one named function of a pipeline, and how it wants to be run."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast, get_args

from penstock.errors import PipelineError, nearest
from penstock.jobs.failures import Declared
from penstock.jobs.job import Unit, bounded_key, canonical_key
from penstock.jobs.windows import Window
from penstock.pipeline.step_options import declared_errors, duration_s, retry_choice
from penstock.settings import RetryChoice

Isolation: TypeAlias = Literal["inline", "thread", "process"]
Invoke: TypeAlias = Callable[[Any, Any], Any]
KeyOf: TypeAlias = Callable[[Any], str]

# A stream is a run-level step that does not end by itself.
STREAM = "stream"
UNITS: tuple[str, ...] = (*get_args(Unit), STREAM)
ISOLATIONS: tuple[str, ...] = get_args(Isolation)
RESOURCES = ("cpu", "memory_mb")
_NAME = re.compile(r"[^\W\d]\w*(\.\w+)*")


class DataError(Exception):
    """An item or a record that can't be used as it is; trying again would not help."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A step as it was written, before anything is checked."""

    function: Callable[..., Any]
    unit: Any = None
    after: Any = ()
    key: Any = None
    gather: Any = False
    retry: Any = None
    timeout: Any = None
    priority: Any = None
    resources: Any = None
    isolation: Any = None
    useful_for: Any = None
    required: Any = False
    errors: Any = None
    windows: Any = False
    follow: Any = False
    # Otherwise its function's.
    name: Any = None
    fuse: Any = True
    takes: Any = ()


# A depth that is no bound: nobody counts the steps, which takes as long as there are some.
UNBOUNDED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Follow:
    """How far a step may follow what it finds: in steps from where it began, and in pages of one run."""

    depth: int = 10
    pages: int = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step that was checked. `None` means the source decides."""

    name: str
    function: Callable[..., Any]
    unit: Unit
    after: tuple[str, ...]
    key: str | Callable[[Any], Any] | None
    is_gather: bool
    retry: RetryChoice | None
    timeout_s: float | None
    priority: int | None
    cpu: float
    memory_mb: float
    isolation: Isolation | None
    stands_alone: bool
    takes_item: bool
    takes_ctx: bool
    is_async: bool
    invoke: Invoke
    is_stream: bool = False
    useful_for_s: float | None = None
    is_required: bool = False
    errors: Declared = ()
    takes_windows: bool = False
    follow: Follow | None = None
    # What it yields is for itself, too.
    feeds_itself: bool = False
    # Kinds of the items that it is given; without any, all.
    takes: tuple[str, ...] = ()

    @property
    def is_root(self) -> bool:
        return not self.after


def check_step(declared: Declaration) -> Step:
    """The step this declaration stands for, or a PipelineError that says what is wrong with it."""
    name = _name(declared.function) if declared.name is None else _own_name(declared)
    after = _after(name, declared.after)
    unit = _unit(name, declared, bool(after))
    cpu, memory_mb = _resources(name, declared.resources)
    # Alone after itself it would never begin: that is told as a circle.
    feeds_itself = name in after and len(after) > 1
    if feeds_itself:
        after = tuple(each for each in after if each != name)
    takes_item, takes_ctx, invoke = _signature(name, declared.function)
    is_async = _is_async(declared.function)
    step = Step(
        name=name,
        function=declared.function,
        unit=unit,
        after=after,
        key=_key(name, declared.key),
        is_gather=bool(declared.gather),
        retry=retry_choice(f"step {name!r}", declared.retry),
        timeout_s=duration_s(f"step {name!r}: timeout", declared.timeout),
        priority=_priority(name, declared.priority),
        cpu=cpu,
        memory_mb=memory_mb,
        isolation=_isolation(name, declared.isolation, is_async),
        stands_alone=feeds_itself or _stands_alone(declared),
        takes_item=takes_item,
        takes_ctx=takes_ctx,
        is_async=is_async,
        invoke=invoke,
        is_stream=declared.unit == STREAM,
        useful_for_s=duration_s(f"step {name!r}: useful_for", declared.useful_for),
        is_required=bool(declared.required),
        errors=declared_errors(f"step {name!r}", declared.errors),
        takes_windows=bool(declared.windows),
        follow=_follow(name, declared.follow or feeds_itself),
        feeds_itself=feeds_itself,
        takes=_takes(name, declared.takes),
    )
    _check_place(step)
    return step


def _stands_alone(declared: Declaration) -> bool:
    """Whether the step says something about its job that a predecessor's job could not honour."""
    own = (
        declared.key,
        declared.retry,
        declared.timeout,
        declared.priority,
        declared.resources,
        declared.isolation,
        declared.useful_for,
    )
    is_apart = declared.gather or declared.required or declared.windows or declared.follow
    is_apart = is_apart or declared.takes or not declared.fuse
    return bool(is_apart) or any(value is not None for value in own)


def _check_place(step: Step) -> None:
    if step.is_stream and not step.is_root:
        raise PipelineError(f"step {step.name!r} is a stream: it begins a run, so it has no after=")
    if step.is_stream and step.isolation == "process":
        raise PipelineError(f"step {step.name!r} is a stream, which can't run in a child process")
    if step.takes_windows:
        _check_windows(step)
    if step.follow is not None and (step.is_root or step.is_gather or step.unit == "run"):
        raise PipelineError(
            f"step {step.name!r} follows what it finds, so it gets items: it has after=… and is of "
            "unit 'page' or 'candidate'"
        )
    if step.is_gather and step.is_root:
        raise PipelineError(f"step {step.name!r} gathers, so it needs after=…")
    if step.takes_item and step.is_gather:
        raise PipelineError(f"step {step.name!r} gathers: it gets no item, only ctx")
    if step.takes_item and step.is_root and not step.takes_windows:
        raise PipelineError(f"step {step.name!r} begins the run: it gets no item, only ctx")
    if step.takes and (step.is_gather or step.is_root):
        raise PipelineError(f"step {step.name!r} gets no item, so takes= has nothing to choose")
    if step.key is not None and (step.is_gather or step.is_root):
        raise PipelineError(f"step {step.name!r} gets no item, so key= has nothing to name")


def _check_windows(step: Step) -> None:
    """Its items are windows, made by a backfill's plan or by the step before it."""
    if step.unit != "page" or step.is_gather:
        what = "a gather step" if step.is_gather else f"unit {step.unit!r}"
        raise PipelineError(
            f"step {step.name!r} takes windows, so it is of unit 'page', not {what}"
        )
    if step.key is not None:
        raise PipelineError(f"step {step.name!r} takes windows, which are its keys: it has no key=")


def _name(function: Any) -> str:
    if not callable(function):
        raise PipelineError(f"a step is a function, not {type(function).__name__}")
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise PipelineError("a step needs a name: decorate a named function, not a lambda")
    return str(name)


def _own_name(declared: Declaration) -> str:
    if not is_text(declared.name) or not _NAME.fullmatch(declared.name):
        raise PipelineError(
            f"{declared.name!r:.60} can't be the name of a step: letters, digits, _ and dots"
        )
    if not callable(declared.function):
        raise PipelineError(f"step {declared.name!r} is not a function")
    return str(declared.name)


def _takes(name: str, takes: Any) -> tuple[str, ...]:
    kinds = (takes,) if isinstance(takes, str) else tuple(takes or ())
    if any(not is_text(each) for each in kinds):
        raise PipelineError(
            f"step {name!r}: takes= names kinds of items, as their field 'kind' does"
        )
    return kinds


def _after(name: str, after: Any) -> tuple[str, ...]:
    names = (after,) if isinstance(after, str) else tuple(after or ())
    if any(not is_text(each) for each in names):
        raise PipelineError(f"step {name!r}: after= takes the names of steps")
    return tuple(dict.fromkeys(names))


def _unit(name: str, declared: Declaration, has_predecessor: bool) -> Unit:
    if declared.unit is None:
        return "page" if has_predecessor and not declared.gather else "run"
    known = _one_of(name, "unit", declared.unit, UNITS)
    return "run" if known == STREAM else cast(Unit, known)


def _follow(name: str, follow: Any) -> Follow | None:
    if follow is False or follow is None:
        return None
    if follow is True:
        return Follow()
    if not isinstance(follow, Mapping) or not set(follow) <= {"depth", "pages"}:
        raise PipelineError(
            f"step {name!r}: follow is True or a mapping like {{'depth': 5, 'pages': 1000}}"
        )
    for bound, most in follow.items():
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise PipelineError(
                f"step {name!r}: follow: {bound} {most!r} is no whole number above 0"
            )
    return Follow(**follow)


def _isolation(name: str, isolation: Any, is_async: bool) -> Isolation | None:
    if isolation is None:
        return None
    known = _one_of(name, "isolation", isolation, ISOLATIONS)
    if known == "thread" and is_async:
        raise PipelineError(f"step {name!r} is async, so it can't have isolation='thread'")
    return cast(Isolation, known)


def _one_of(name: str, option: str, value: Any, known: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return value
    raise PipelineError(
        f"step {name!r}: unknown {option} {value!r}; {nearest(str(value), known)}",
        hint=f"{option} is one of: {', '.join(known)}",
    )


def _priority(name: str, priority: Any) -> int | None:
    if priority is None or (isinstance(priority, int) and not isinstance(priority, bool)):
        return priority
    raise PipelineError(f"step {name!r}: priority {priority!r} is not a whole number")


def _resources(name: str, resources: Any) -> tuple[float, float]:
    if resources is None:
        return 0.0, 0.0
    if not isinstance(resources, Mapping):
        raise PipelineError(f"step {name!r}: resources is a mapping like {{'cpu': 1}}")
    for resource, amount in resources.items():
        _one_of(name, "resource", resource, RESOURCES)
        if not _is_number(amount) or not 0 <= amount < math.inf:
            raise PipelineError(f"step {name!r}: resource {resource!r} can't be {amount!r}")
    return float(resources.get("cpu", 0.0)), float(resources.get("memory_mb", 0.0))


def is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _key(name: str, key: Any) -> Any:
    if key is None or is_text(key) or callable(key):
        return key
    raise PipelineError(f"step {name!r}: key is the name of a field or a function, not {key!r}")


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _signature(name: str, function: Callable[..., Any]) -> tuple[bool, bool, Invoke]:
    """What the function asks for, and a call that hands it exactly that.

    `ctx` is recognised by its name; the one other parameter without a default is the item.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise PipelineError(f"step {name!r}: its parameters can't be read") from None
    items = [each.name for each in parameters if _wants_item(name, each)]
    names = [each.name for each in parameters]
    if len(items) > 1:
        raise PipelineError(
            f"step {name!r} takes ({', '.join(names)}): a step takes its item and ctx, no more"
        )
    has_ctx = "ctx" in names
    ctx_first = has_ctx and bool(items) and names.index("ctx") < names.index(items[0])
    return bool(items), has_ctx, _invoker(function, bool(items), has_ctx, ctx_first)


def _wants_item(name: str, parameter: inspect.Parameter) -> bool:
    kind = parameter.kind
    if kind is parameter.VAR_POSITIONAL:
        raise PipelineError(
            f"step {name!r} takes *{parameter.name}: name its item",
            hint="a decorator keeps the names of parameters with functools.wraps",
        )
    if parameter.name == "ctx":
        if kind is parameter.POSITIONAL_ONLY:
            raise PipelineError(f"step {name!r}: ctx can't be positional-only")
        return False
    if kind is parameter.VAR_KEYWORD or parameter.default is not parameter.empty:
        return False
    if kind is parameter.KEYWORD_ONLY:
        raise PipelineError(f"step {name!r}: nothing is passed for {parameter.name!r}")
    return True


def _invoker(
    function: Callable[..., Any], has_item: bool, has_ctx: bool, ctx_first: bool
) -> Invoke:
    if has_item and has_ctx and ctx_first:
        return lambda item, ctx: function(ctx, item)
    if has_item and has_ctx:
        return lambda item, ctx: function(item, ctx=ctx)
    if has_item:
        return lambda item, ctx: function(item)
    if has_ctx:
        return lambda item, ctx: function(ctx=ctx)
    return lambda item, ctx: function()


def key_of(step: Step) -> KeyOf:
    """The function that makes the key of an item handed to this step."""
    if step.takes_windows:
        return key_of_window(step.name)
    key = step.key
    if key is None:
        return canonical_key
    if isinstance(key, str):
        return _key_of_field(step.name, key)
    return _key_of_function(step.name, key)


def _key_of_field(name: str, field: str) -> KeyOf:
    def key_of_field(item: Any) -> str:
        try:
            value = item[field]
        except (KeyError, TypeError, IndexError):
            raise DataError(
                f"the key of step {name!r} is the field {field!r}, which {_describe(item)} lacks"
            ) from None
        return _key_text(name, value)

    return key_of_field


def key_of_window(name: str) -> KeyOf:
    """Equal for the same window of the same partition, however its times are written."""

    def key_of_item(item: Any) -> str:
        return bounded_key(window_of(name, item).key())

    return key_of_item


def window_of(name: str, item: Any) -> Window:
    """The window that an item stands for: {"partition": …, "from": …, "to": …}."""
    if not isinstance(item, Mapping):
        raise DataError(f"step {name!r} takes windows, and {_describe(item)} is none")
    start, end = (_moment(name, item, side) for side in ("from", "to"))
    partition = item.get("partition", "default")
    if not is_text(partition):
        raise DataError(f"step {name!r}: a window's partition is text, not {partition!r}")
    if end <= start:
        raise DataError(f"step {name!r}: a window ends after it begins, not at {item['to']!r}")
    return Window(partition, start.timestamp(), end.timestamp())


def _moment(name: str, item: Mapping[str, Any], side: str) -> datetime:
    """A time with a zone, or else in UTC."""
    text: Any = item.get(side)
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise DataError(
            f"step {name!r}: a window needs {side!r} as a time such as 2024-01-01, not {text!r}"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _key_of_function(name: str, function: Callable[[Any], Any]) -> KeyOf:
    def key_of_function(item: Any) -> str:
        return _key_text(name, function(item))

    return key_of_function


def _key_text(name: str, value: Any) -> str:
    if value is None or value == "":
        raise DataError(f"the key of step {name!r} is empty")
    if isinstance(value, str):
        return bounded_key(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return canonical_key(value)


def _describe(item: Any) -> str:
    if isinstance(item, Mapping):
        return "an item with " + (", ".join(map(str, list(item)[:8])) or "no fields")
    return f"a {type(item).__name__}"
