"""A Tarantool 3 configuration file: YAML, scopes, instances and templates.

Source: Tarantool 3 manual, "Configuration", "Configuration in a file", "Configuration scopes", "Templating",
"Loading secrets from safe storage".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from iproto_server.config.suggestions import did_you_mean
from iproto_server.config.tarantool3.schema import (
    CLUSTER,
    GROUP,
    INSTANCE,
    REPLICASET,
    MapOf,
    Mapped,
    Node,
    Record,
    options_by_path,
)

Key = tuple[str, ...]
"""An option as names from the top of an instance's options: `("wal", "dir")`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value in the file.

    Parameters:
        path: its place, `groups.storages.replicasets.storage-1.wal.dir`.
        value: the value; templates in it are replaced.
    """

    path: str
    value: object


@dataclass(frozen=True, slots=True)
class InstanceOptions:
    """The options of one instance, those of all scopes merged.

    Parameters:
        name: its name; None: the file has no instances, and none was chosen.
        replicaset: the name of its replicaset; "" without one.
        members: the names of all instances of its replicaset.
        found: the values by option; an item of a mapping with free names is there as well, with its mapping.
    """

    name: str | None
    replicaset: str
    members: tuple[str, ...]
    found: Mapping[Key, Found]


_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_VALUES_MAX: Final = 100_000
"""Values of a file with all its aliases replaced; real files have hundreds."""
_UNREADABLE: Final = (AttributeError, LookupError, OverflowError, TypeError)
"""What PyYAML raises for a wrong value behind a tag, such as `!!bool maybe`."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which refuses a key that a mapping has twice, and takes `10:30` for a text.

    YAML 1.1 takes it for a number to the base of 60; Tarantool does not.
    """

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0] and _SEXAGESIMAL.fullmatch(value):
            return self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is not a text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key}" is there twice', key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_instance(text: str, name: str | None, environment: Mapping[str, str]) -> InstanceOptions:
    """Read the options of one instance.

    Parameters:
        text: the file.
        name: the instance; None: the only one of the file.
        environment: the variables that `config.context` may name.

    Returns:
        The options; their values are not checked.

    Raises:
        ValueError: it is no YAML, a name in it is unknown, no such instance exists, or a template has no
            value; the message begins with the place.
    """
    try:
        loaded = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not a YAML file: {_yaml_reason(error)}") from error
    except _UNREADABLE as error:
        raise ValueError("it is not a YAML file: a value does not fit its tag") from error
    except RecursionError:
        raise ValueError("it is not a YAML file: it is nested too deeply") from None
    _check_finite(loaded)
    cluster = _mapping(loaded, "the file")
    _check_names(cluster, CLUSTER, "")
    instances = dict(_instances(cluster))
    if name is None and len(instances) == 1:
        [name] = instances
    if not instances:
        found = dict(_flatten(_without(cluster, "groups"), CLUSTER))
        return _templates_replaced(InstanceOptions(name, "", (), found), {}, environment)
    if name is None:
        raise ValueError(f"groups: choose one of the instances with --instance-name: {', '.join(instances)}")
    if name not in instances:
        hint = did_you_mean(name, instances) or f": there are {', '.join(instances)}"
        raise ValueError(f'groups: there is no instance "{name}"{hint}')
    options, names = _merged(cluster, instances[name], name)
    return _templates_replaced(options, names, environment)


def _yaml_reason(error: yaml.YAMLError) -> str:
    """Return the reason in one line, without the text of the file, which may have passwords."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or "it cannot be read"
    return reason if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {reason}"


def _check_finite(loaded: object) -> None:
    """Raise ValueError if aliases make a value a part of itself, or more values than any file has."""
    sizes: dict[int, int | None] = {}

    def size(value: object) -> int:
        if not isinstance(value, list | dict):
            return 1
        if id(value) in sizes:
            known = sizes[id(value)]
            if known is None:
                raise ValueError("an alias leads to a value that contains it")
            return known
        sizes[id(value)] = None
        items = value.values() if isinstance(value, dict) else value
        total = sizes[id(value)] = 1 + sum(map(size, items))
        return total

    if size(loaded) > _VALUES_MAX:
        raise ValueError(f"with its aliases replaced, the file has more than {_VALUES_MAX:,} values")


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{path}: a mapping of names to values is expected")
    return value


def _without(cluster: Mapping[str, object], *names: str) -> Mapping[str, object]:
    return {name: value for name, value in cluster.items() if name not in names}


def _check_names(values: Mapping[str, object], record: Record, prefix: str) -> None:
    """Refuse names that no option has, in all scopes and instances."""
    for name, value in values.items():
        path = prefix + name
        if name not in record:
            raise ValueError(f"{path}: unknown option{_hint(name, record)}")
        _check_value_names(value, record[name], path)


def _check_value_names(value: object, node: Node, path: str) -> None:
    if isinstance(node, MapOf):
        for name, item in _mapping(value, path).items():
            _check_value_names(item, node.value, f"{path}.{name}")
    elif isinstance(node, Mapping):
        _check_names(_mapping(value, path), node, f"{path}.")


def _hint(name: str, record: Record) -> str:
    """Suggest a name beside the mistyped one, or the path of an option that is elsewhere or of `box.cfg`."""
    beside = did_you_mean(name, record)
    if beside:
        return beside
    elsewhere: dict[str, str] = {}
    for path, node in options_by_path():
        elsewhere.setdefault(path.rpartition(".")[2], path)
        if isinstance(node, Mapped):
            elsewhere[node.option] = path
    return f', did you mean "{elsewhere[name]}"?' if name in elsewhere else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an instance is."""

    group: str
    replicaset: str
    members: tuple[str, ...]


def _instances(cluster: Mapping[str, object]) -> Iterator[tuple[str, _Place]]:
    """Yield the names of all instances. Raises ValueError if two have the same name."""
    seen: dict[str, str] = {}
    for group, options in _mapping(cluster.get("groups"), "groups").items():
        at_group = f"groups.{group}"
        replicasets = _mapping(options, at_group).get("replicasets")
        for replicaset, parts in _mapping(replicasets, f"{at_group}.replicasets").items():
            at_replicaset = f"{at_group}.replicasets.{replicaset}"
            members = _mapping(_mapping(parts, at_replicaset).get("instances"), f"{at_replicaset}.instances")
            for name in members:
                if name in seen:
                    raise ValueError(
                        f'{at_replicaset}.instances.{name}: {seen[name]} has an instance "{name}" as well'
                    )
                seen[name] = at_replicaset
                yield name, _Place(group, replicaset, tuple(members))


def _merged(cluster: Mapping[str, Any], place: _Place, name: str) -> tuple[InstanceOptions, dict[str, str]]:
    """Merge the scopes of an instance: a narrower one wins, mappings are merged, and lists replaced."""
    group = cluster["groups"][place.group]
    replicaset = group["replicasets"][place.replicaset]
    at_group = f"groups.{place.group}."
    at_replicaset = f"{at_group}replicasets.{place.replicaset}."
    found: dict[Key, Found] = {}
    for values, record, prefix in (
        (_without(cluster, "groups"), CLUSTER, ""),
        (_without(group, "replicasets"), GROUP, at_group),
        (_without(replicaset, "instances"), REPLICASET, at_replicaset),
        (replicaset["instances"][name] or {}, INSTANCE, f"{at_replicaset}instances.{name}."),
    ):
        found.update(_flatten(values, record, prefix))
    names = {"instance_name": name, "replicaset_name": place.replicaset, "group_name": place.group}
    return InstanceOptions(name, place.replicaset, place.members, found), names


def _flatten(
    values: Mapping[str, object], record: Record, prefix: str = "", key: Key = ()
) -> Iterator[tuple[Key, Found]]:
    """Yield the values of options; null is no value."""
    for name, value in values.items():
        if value is not None:
            yield from _flatten_value(value, record[name], prefix + name, (*key, name))


def _flatten_value(value: object, node: Node, path: str, key: Key) -> Iterator[tuple[Key, Found]]:
    if isinstance(node, MapOf):
        for name, item in _mapping(value, path).items():
            if isinstance(node.value, Mapping):
                yield (*key, name), Found(f"{path}.{name}", item)
                yield from _flatten(_mapping(item, path), node.value, f"{path}.{name}.", (*key, name))
            elif item is not None:
                yield (*key, name), Found(f"{path}.{name}", item)
    elif isinstance(node, Mapping):
        yield from _flatten(_mapping(value, path), node, f"{path}.", key)
    else:
        yield key, Found(path, value)


_TEMPLATE: Final = re.compile(r"\{\{\s*(.*?)\s*\}\}")


def _templates_replaced(
    options: InstanceOptions, names: dict[str, str], environment: Mapping[str, str]
) -> InstanceOptions:
    """Replace `{{ instance_name }}` and the like in all texts."""
    variables = dict(names)
    if options.name is not None:
        variables["instance_name"] = options.name
    work_dir = options.found.get(("process", "work_dir"))
    base = Path(str(_replaced(work_dir.value, variables, work_dir.path)) if work_dir else "")
    context: dict[Key, Found] = {}
    for key, found in options.found.items():
        if key[:2] == ("config", "context"):
            context[key] = found
            variables[f"context.{key[2]}"] = _context_value(found, base, environment)
    replaced = {
        key: replace(found, value=_replaced(found.value, variables, found.path))
        for key, found in options.found.items()
        if key not in context
    }
    return replace(options, found=replaced)


def _replaced(value: object, variables: Mapping[str, str], path: str) -> object:
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda match: _variable(match[1], variables, path), value)
    if isinstance(value, list):
        return [_replaced(item, variables, path) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(item, variables, path) for name, item in value.items()}
    return value


def _variable(name: str, variables: Mapping[str, str], path: str) -> str:
    if name in variables:
        return variables[name]
    if name == "instance_name":
        raise ValueError(f"{path}: {{{{ instance_name }}}} has no value: give --instance-name")
    raise ValueError(f"{path}: there is no variable {{{{ {name} }}}}{did_you_mean(name, variables)}")


def _context_value(found: Found, base: Path, environment: Mapping[str, str]) -> str:
    """Return the text of a variable of `config.context`: given there, in the environment or in a file."""
    definition = found.value
    if isinstance(definition, bool):
        return str(definition).lower()
    if isinstance(definition, str | int | float):
        return str(definition)
    fields = _mapping(definition, found.path)
    source = fields.get("from")
    allowed = {"env": ("env",), "file": ("file", "rstrip")}.get(source if isinstance(source, str) else "")
    if allowed is None:
        raise ValueError(f'{found.path}.from: "env" or "file" is expected')
    for name in fields:
        if name not in ("from", *allowed):
            raise ValueError(f"{found.path}.{name}: unknown option{did_you_mean(name, allowed)}")
    target = fields.get(allowed[0])
    if not isinstance(target, str) or not target:
        raise ValueError(f"{found.path}.{allowed[0]}: a name is expected")
    if source == "env":
        if target not in environment:
            raise ValueError(f'{found.path}.env: there is no environment variable "{target}"')
        return environment[target]
    try:
        text = (base / target).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{found.path}.file: cannot read {base / target}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{found.path}.file: {base / target} is not a text") from error
    rstrip = fields.get("rstrip", False)
    if not isinstance(rstrip, bool):
        raise ValueError(f"{found.path}.rstrip: true or false is expected")
    return text.rstrip() if rstrip else text
