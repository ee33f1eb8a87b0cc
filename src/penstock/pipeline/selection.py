"""A selection: the steps of a registry that a profile chooses, in order, each with what it comes after.

The rules, which docs/registries.md explains:

- A step that another one needs is added. If somebody has switched it off, that is an error.
- The place of a step that is left out is taken by those before it, where they give what is taken.
- A final step comes after all others.
- A step whose items nobody takes, or that gets none, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import nearest
from penstock.pipeline.registry import Profile, RegisteredStep, Registry


@dataclass(frozen=True, slots=True)
class ChosenStep:
    """A step of a selection: what it comes after there, and why it is in."""

    step: RegisteredStep
    after: tuple[str, ...]
    why: str

    @property
    def name(self) -> str:
        return self.step.name


@dataclass(frozen=True, slots=True)
class Selection:
    """What a pipeline is made of. Each step follows all that it comes after."""

    registry: Registry
    profile: str
    steps: tuple[ChosenStep, ...]
    # Why the others are not in.
    left_out: dict[str, str]
    config: dict[str, Any]

    @property
    def text(self) -> str:
        """Equal for equal graphs."""
        return ";".join(f"{each.name}<{','.join(each.after)}" for each in self.steps)


def select(
    registry: Registry,
    profile: str | Mapping[str, Any] | Profile | None = None,
    features: Mapping[str, bool] | None = None,
) -> Selection:
    """The steps of this profile. `features` are switched over what the profile says of them."""
    check_registry(registry)
    chosen = registry.profile_of(profile)
    choice = _Choice(registry, chosen.name)
    choice.take(chosen)
    choice.switch({**choice.features, **(features or {})})
    choice.complete()
    after = _links(registry, choice.why)
    _refuse_loose_ends(registry, chosen.name, after)
    ordered = _in_order(registry, after)
    steps = tuple(ChosenStep(registry.steps[n], after[n], choice.why[n]) for n in ordered)
    left_out = {n: choice.off.get(n, _NOT_IN) for n in registry.steps if n not in choice.why}
    return Selection(registry, chosen.name, steps, left_out, choice.config)


_NOT_IN = "the profile does not name it"


@dataclass(slots=True)
class _Choice:
    """Which steps are in and why, and which are switched off and by what."""

    registry: Registry
    profile: str
    why: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    features: dict[str, bool] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)

    def take(self, profile: Profile) -> None:
        """What a profile names, after all that the profiles name which it extends."""
        for each in reversed(_lineage(self.registry, profile)):
            for name in each.steps:
                self.put_in(self.registry.step(name).name, f"profile {each.name}")
            for name in each.without:
                self.put_out(self.registry.step(name).name, f"profile {each.name} leaves it out")
            if both := set(each.steps) & set(each.without):
                raise self._error(f"{min(both)!r} is both in `steps` and in `without`")
            self.features.update(each.features)
            self.config = overlaid(self.config, each.config)

    def switch(self, features: Mapping[str, bool]) -> None:
        known = self.registry.features
        for name, is_on in features.items():
            if name not in known:
                raise self._error(f"there is no feature {name!r}; {nearest(name, known)}")
            if not isinstance(is_on, bool):
                raise self._error(f"feature {name!r} is true or false, not {is_on!r:.60}")
            for step in known[name]:
                if is_on:
                    self.put_in(step, f"feature {name}")
                else:
                    self.put_out(step, f"feature {name} is off")

    def complete(self) -> None:
        """Add what is needed, and what that needs; refuse what is needed and switched off."""
        if not self.why:
            raise self._error("it has no steps")
        waiting = list(self.why)
        while waiting:
            name = waiting.pop(0)
            for need in self.registry.steps[name].needs:
                if need in self.why:
                    continue
                if need in self.off:
                    raise self._error(
                        f"step {name!r} needs {need!r}, which is not in it: {self.off[need]}",
                        f"leave out {name!r} too, or have {need!r}",
                    )
                self.why[need] = f"added: {name} needs it"
                waiting.append(need)

    def put_in(self, name: str, why: str) -> None:
        self.off.pop(name, None)
        self.why.setdefault(name, why)

    def put_out(self, name: str, why: str) -> None:
        self.why.pop(name, None)
        self.off[name] = why

    def _error(self, message: str, hint: str = "") -> Exception:
        return self.registry.error(f"profile {self.profile!r}: {message}", hint)


def _lineage(registry: Registry, profile: Profile) -> list[Profile]:
    """The profile, the one that it extends, and so on."""
    found = [profile]
    while found[-1].extends:
        base = registry.profile_of(found[-1].extends)
        if base in found:
            names = " → ".join(each.name for each in (*found, base))
            raise registry.error(f"profiles extend each other: {names}")
        found.append(base)
    return found


def _links(registry: Registry, chosen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What each chosen step comes after."""
    steps = registry.steps
    after = {
        name: tuple(dict.fromkeys(_before(registry, steps[name], chosen)))
        for name in steps
        if name in chosen
    }
    inner = {name: given for name, given in after.items() if not steps[name].is_final}
    ends = _ends(inner)
    for name, given in after.items():
        if steps[name].is_final:
            after[name] = tuple(dict.fromkeys((*ends, *(n for n in given if steps[n].is_final))))
    return after


def _ends(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The steps that nothing comes after."""
    followed = {each for given in after.values() for each in given}
    return [name for name in after if name not in followed]


def predecessors(registry: Registry, step: RegisteredStep) -> tuple[str, ...]:
    """What it comes after: as it says, and what it needs where that does not lead there anyway."""
    reached = _reached(registry, step.after)
    return (*step.after, *(need for need in step.needs if need not in reached))


def _reached(registry: Registry, names: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            before = registry.step(name)
            waiting += [*before.after, *before.needs]
    return found


def _before(registry: Registry, step: RegisteredStep, chosen: Mapping[str, str]) -> Iterator[str]:
    """The chosen steps before a step, through those that are left out."""
    waiting, seen = list(predecessors(registry, step)), set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name not in chosen:
            waiting = [*predecessors(registry, registry.steps[name]), *waiting]
        elif gives(registry.steps[name], step):
            yield name


def gives(before: RegisteredStep, step: RegisteredStep) -> bool:
    """Whether what the one gives is something that the other takes; one that gathers is only told when."""
    if step.is_gather or not step.takes or not before.outputs:
        return True
    return not set(before.outputs).isdisjoint(step.takes)


def _refuse_loose_ends(
    registry: Registry, profile: str, after: Mapping[str, tuple[str, ...]]
) -> None:
    takers = {
        name: [n for n in after if name in after[n] and _takes(registry, n)] for name in after
    }
    for name, before in after.items():
        step = registry.steps[name]
        if not before and predecessors(registry, step):
            givers = [n for n in predecessors(registry, step) if gives(registry.steps[n], step)]
            what = f"takes {' and '.join(step.takes)}, which" if step.takes else "takes what"
            raise registry.error(
                f"profile {profile!r}: step {name!r} {what} no step of it gives",
                f"add {' or '.join(givers)}, or leave out {name}",
            )
        wanted = [n for n in registry.steps if step.outputs and _wants(registry.steps[n], step)]
        if wanted and not takers[name]:
            raise registry.error(
                f"profile {profile!r}: step {name!r} gives {' and '.join(step.outputs)}, which no step of "
                "it takes",
                f"add {' or '.join(wanted)}, or leave out {name}",
            )


def _takes(registry: Registry, name: str) -> bool:
    return not registry.steps[name].is_gather


def _wants(step: RegisteredStep, giver: RegisteredStep) -> bool:
    return not set(step.takes).isdisjoint(giver.outputs) and step is not giver


def _in_order(registry: Registry, after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Each step behind all that it comes after; otherwise as they were registered."""
    ordered: dict[str, None] = {}
    waiting = list(after)
    while waiting:
        ready = [name for name in waiting if all(each in ordered for each in after[name])]
        if not ready:
            raise registry.error("steps wait for each other: " + _circle(after, waiting))
        ordered[ready[0]] = None
        waiting.remove(ready[0])
    return list(ordered)


def _circle(after: Mapping[str, tuple[str, ...]], waiting: list[str]) -> str:
    path: list[str] = []
    name = waiting[0]
    while name not in path:
        path.append(name)
        name = next(each for each in after[name] if each in waiting)
    # Walked from a step to the one before it; told in the order in which the data would flow.
    return " → ".join([*path[path.index(name) :], name][::-1])


def check_registry(registry: Registry) -> None:
    """Refuse names that nobody has, steps after a final one, and circles."""
    for step in registry.steps.values():
        for name in (*step.needs, *step.after):
            if name not in registry.steps:
                near = nearest(name, [each for each in registry.steps if each != step.name])
                raise registry.error(f"step {step.name!r} comes after {name!r}, no step; {near}")
            if registry.steps[name].is_final and not step.is_final:
                raise registry.error(
                    f"step {step.name!r} comes after {name!r}, which is final: nothing does"
                )
    for feature, names in registry.features.items():
        for name in names:
            if name not in registry.steps:
                near = nearest(name, registry.steps)
                raise registry.error(f"feature {feature!r} has {name!r}, which is no step; {near}")
    _in_order(registry, {n: (*s.after, *s.needs) for n, s in registry.steps.items()})


def overlaid(params: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Some params with others over them, mapping by mapping."""
    merged = dict(params)
    for name, value in over.items():
        below = merged.get(name)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = overlaid(below, value)
        merged[name] = value
    return merged
