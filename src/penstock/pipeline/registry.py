"""A registry: steps by name, from which pipelines are put together by profiles.

A step is named by text, `module:function`, and imported when a pipeline is made of it. What belongs
together, in which order, and what is missing is worked out in `selection`, without importing anything.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from penstock.errors import PipelineError, nearest

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
PROFILE_KEYS = ("extends", "steps", "without", "features", "config", "summary")


@dataclass(frozen=True, slots=True)
class RegisteredStep:
    """A step that pipelines can have. `options` are those of `@pipeline.step`, such as `unit` and `retry`."""

    name: str
    target: str
    phase: str = ""
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    is_final: bool = False
    is_network: bool = False
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_gather(self) -> bool:
        return self.is_final or bool(self.options.get("gather"))

    @property
    def identifier(self) -> str:
        """Its name where dots are not allowed: `dumps_collect`."""
        return self.name.replace(".", "_")


@dataclass(frozen=True, slots=True)
class Profile:
    """Which steps a pipeline has, as data. `config` goes over the params of the source."""

    name: str
    steps: tuple[str, ...] = ()
    extends: str = ""
    without: tuple[str, ...] = ()
    features: Mapping[str, bool] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """Steps, features and profiles by name.

    `default` is the profile of a pipeline that names none. `extra` is what is to be installed where a module
    is missing. With a `version`, that stands for the code of Penstock's own steps.
    """

    name: str
    default: str = ""
    extra: str = ""
    version: str = ""
    steps: dict[str, RegisteredStep] = field(default_factory=dict, repr=False)
    profiles: dict[str, Profile] = field(default_factory=dict, repr=False)
    features: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def add(
        self,
        name: str,
        target: str,
        *,
        phase: str = "",
        needs: str | Iterable[str] = (),
        after: str | Iterable[str] = (),
        takes: str | Iterable[str] = (),
        outputs: str | Iterable[str] = (),
        final: bool = False,
        network: bool = False,
        summary: str = "",
        unit: str | None = None,
        key: Any = None,
        gather: bool = False,
        retry: str | Mapping[str, Any] | None = None,
        timeout: str | float | None = None,
        priority: int | None = None,
        resources: Mapping[str, float] | None = None,
        isolation: str | None = None,
        useful_for: str | float | None = None,
        required: bool = False,
        errors: Mapping[str, Any] | None = None,
        follow: bool | Mapping[str, int] = False,
    ) -> None:
        """Register a step: `add("http.static", "shop.steps:http_static", after="dumps.collect")`.

        It comes after the steps of `after` that the pipeline has, and can't be without those of `needs`.
        `takes` and `outputs` are kinds of items (their field `kind`). A `final` step runs once, after all
        others. `network`: it makes requests. The rest is as in `@pipeline.step`.
        """
        options: dict[str, Any] = {
            "unit": unit,
            "key": key,
            "gather": gather or final,
            "retry": retry,
            "timeout": timeout,
            "priority": priority,
            "resources": resources,
            "isolation": isolation,
            "useful_for": useful_for,
            "required": required,
            "errors": errors,
            "follow": follow,
        }
        step = RegisteredStep(
            name, target, phase, names_of(needs), names_of(after), names_of(takes), names_of(outputs),
            final, network, summary, MappingProxyType(options),
        )  # fmt: skip
        self._refuse_step(step)
        self.steps[name] = step

    def feature(self, name: str, *steps: str) -> None:
        """Name some steps that are switched on and off together: `features: {maps: false}`."""
        self._refuse_name("feature", name, self.features)
        if not steps:
            raise self.error(f"feature {name!r} has no steps")
        self.features[name] = steps

    def profile(
        self,
        name: str,
        *,
        steps: str | Iterable[str] = (),
        extends: str = "",
        without: str | Iterable[str] = (),
        features: Mapping[str, bool] | None = None,
        config: Mapping[str, Any] | None = None,
        summary: str = "",
    ) -> None:
        """Name a choice of steps. With `extends` it has those of another one too, but for `without`."""
        self._refuse_name("profile", name, self.profiles)
        self.profiles[name] = Profile(
            name, names_of(steps), extends, names_of(without), features or {}, config or {}, summary
        )

    def step(self, name: str) -> RegisteredStep:
        found = self.steps.get(name)
        if found is None:
            raise self.error(f"there is no step {name!r}; {nearest(name, self.steps)}")
        return found

    def profile_of(self, choice: str | Mapping[str, Any] | Profile | None) -> Profile:
        """The profile that is meant by a name, or by what a configuration says of one."""
        if isinstance(choice, Profile):
            return choice
        if choice is None or choice == "":
            choice = self.default
        if isinstance(choice, Mapping):
            return self._written(choice)
        if not choice:
            raise self.error("which profile?", f"profile: {' | '.join(self.profiles) or 'NAME'}")
        if choice not in self.profiles:
            raise self.error(
                f"there is no profile {choice!r}; {nearest(str(choice), self.profiles)}"
            )
        return self.profiles[choice]

    def _written(self, choice: Mapping[str, Any]) -> Profile:
        for key in choice:
            if key not in PROFILE_KEYS:
                raise self.error(f"a profile has no {key!r}; {nearest(str(key), PROFILE_KEYS)}")
        for key, kind in (("features", dict), ("config", dict), ("extends", str)):
            if not isinstance(choice.get(key) or kind(), kind):
                shape = "a mapping" if kind is dict else "the name of a profile"
                raise self.error(f"{key} of a profile is {shape}, not {choice[key]!r:.60}")
        return Profile(
            "own",
            names_of(choice.get("steps")),
            choice.get("extends") or ("" if choice.get("steps") else self.default),
            names_of(choice.get("without")),
            choice.get("features") or {},
            choice.get("config") or {},
        )

    def _refuse_step(self, step: RegisteredStep) -> None:
        self._refuse_name("step", step.name, self.steps)
        if not isinstance(step.target, str) or not _TARGET.fullmatch(step.target):
            raise self.error(f"step {step.name!r} is not module:function but {step.target!r:.60}")
        if any(each.identifier == step.identifier for each in self.steps.values()):
            raise self.error(
                f"step {step.name!r} would be {step.identifier!r} in other orchestrators, as another is"
            )

    def _refuse_name(self, what: str, name: Any, known: Mapping[str, Any]) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.error(
                f"{name!r:.60} can't be the name of a {what}: letters, digits, _ and dots"
            )
        if name in known:
            raise self.error(f"there are two {what}s named {name!r}")

    def error(self, message: str, hint: str = "") -> PipelineError:
        return PipelineError(f"registry {self.name!r}: {message}", hint)


def names_of(given: Any) -> tuple[str, ...]:
    """Some names, written as one or as many."""
    names = (given,) if isinstance(given, str) else tuple(given or ())
    if any(not isinstance(each, str) or not each for each in names):
        raise PipelineError(f"these are no names: {given!r:.60}")
    return tuple(dict.fromkeys(names))


def function_of(step: RegisteredStep, registry: Registry) -> Callable[..., Any]:
    """The function of a step, imported now; what is wrong with it is said in one line."""
    module_name, _, name = step.target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        hint = f"pip install 'penstock[{registry.extra}]'" if registry.extra else ""
        raise registry.error(
            f"step {step.name!r} ({step.target}) needs the module {error.name!r}", hint
        ) from error
    except PipelineError:
        raise
    except Exception as error:  # a user's module may raise anything while it is imported
        problem = f"{type(error).__name__}: {error}"
        raise registry.error(
            f"step {step.name!r}: importing {module_name!r} failed: {problem}"
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise registry.error(
            f"step {step.name!r}: module {module_name!r} has no function {name!r}",
            nearest(name, functions),
        )
    made: Callable[..., Any] = found
    return made
