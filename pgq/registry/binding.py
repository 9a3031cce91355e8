"""How the keys of a payload become the parameters of a handler. Decided once, at registration."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pgq.errors import UsageError
from pgq.registry.job import Job
from pgq.text import Unreadable, safe

Convert = Callable[[Any], Any]


class Misfit(Exception):
    """A payload that does not fit the handler's signature; the job fails for good."""


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """Makes keyword arguments from a payload."""

    converters: Mapping[str, Convert | None]
    required: frozenset[str]
    job_parameter: str | None
    whole: str | None
    """The only parameter, when its type is a dataclass or model that the whole payload makes."""
    open_ended: bool
    """The handler takes **kwargs."""
    own_type: str | None = None
    """The kind: a payload that names it under `type`, which the handler does not take, fits."""

    def arguments(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The handler's keyword arguments, without the job; Misfit says what does not fit."""
        if isinstance(payload, Unreadable):
            raise Misfit(f"it cannot be read: {payload.reason}")
        if self.own_type is not None and payload.get("type") == self.own_type:
            payload = {key: value for key, value in payload.items() if key != "type"}
        if self.whole is not None:
            convert = self.converters[self.whole]
            assert convert is not None
            return {self.whole: convert(payload)}
        if not self.required <= payload.keys():
            raise Misfit(f"the payload lacks {_names(self.required - payload.keys())}")
        arguments: dict[str, Any] = {}
        for key, value in payload.items():
            if key in self.converters:
                convert = self.converters[key]
                arguments[key] = value if convert is None else _converted(key, value, convert)
            elif not self.open_ended or key == self.job_parameter:
                unknown = payload.keys() - self.converters.keys()
                raise Misfit(f"the handler takes no {_names(unknown)}")
            else:
                arguments[key] = value
        return arguments


def bind(
    function: Callable[..., Any], *, kind: str | None = None, takes_job: bool = True
) -> Binding:
    """Read a signature; UsageError for one that no payload can fill. A record takes no job."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(f"handler {name}: its annotations cannot be read: {error}") from None
    job_parameter: str | None = None
    converters: dict[str, Convert | None] = {}
    required: set[str] = set()
    open_ended = False
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, Any)
        match parameter.kind:
            case inspect.Parameter.POSITIONAL_ONLY | inspect.Parameter.VAR_POSITIONAL:
                raise UsageError(
                    f"handler {name}: {parameter.name} is positional; payload keys fill "
                    "parameters by name"
                )
            case inspect.Parameter.VAR_KEYWORD:
                open_ended = True
                continue
            case _:
                pass
        if takes_job and (hint is Job or (hint is Any and parameter.name == "job")):
            job_parameter = parameter.name
            continue
        converters[parameter.name] = _converter(hint)
        if parameter.default is inspect.Parameter.empty:
            required.add(parameter.name)
    only = next(iter(converters)) if len(converters) == 1 and not open_ended else None
    whole = only if only is not None and _is_record(hints.get(only)) else None
    names = _fields(hints[whole]) if whole is not None else converters.keys()
    own_type = None if "type" in names or open_ended else kind
    return Binding(converters, frozenset(required), job_parameter, whole, open_ended, own_type)


def _names(keys: typing.AbstractSet[str]) -> str:
    shown = ", ".join(repr(safe(key[:60])) for key in sorted(keys)[:5])
    return shown if len(keys) <= 5 else f"{shown} and {len(keys) - 5} more"


def _converted(key: str, value: Any, convert: Convert) -> Any:
    try:
        return convert(value)
    except Misfit as error:
        raise Misfit(f"{safe(key[:60])}: {error}") from None


def _fields(record: Any) -> typing.AbstractSet[str]:
    if _is_model(record):
        return getattr(record, "model_fields", {}).keys()
    return {field.name for field in dataclasses.fields(record)}


def _is_record(hint: object) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or _is_model(hint))


def _is_model(hint: type) -> bool:
    return callable(getattr(hint, "model_validate", None))


_JSON_TYPES: Mapping[type, tuple[str, Callable[[Any], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: (
        "a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ),
    dict: ("an object", lambda value: isinstance(value, dict)),
    list: ("an array", lambda value: isinstance(value, list)),
}


def _converter(hint: Any) -> Convert | None:
    """How to check or build a value of this type; None where anything goes."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return _optional_converter(typing.get_args(hint))
    if _is_record(hint):
        return _model_converter(hint) if _is_model(hint) else _dataclass_converter(hint)
    if origin is list:
        return _list_converter(*typing.get_args(hint))
    plain = origin or hint
    if isinstance(plain, type) and plain in _JSON_TYPES:
        return _type_converter(plain)
    return None


def _optional_converter(options: tuple[Any, ...]) -> Convert | None:
    real = [option for option in options if option is not types.NoneType]
    convert = _converter(real[0]) if len(real) == 1 and len(real) < len(options) else None
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _list_converter(item: Any) -> Convert:
    check = _type_converter(list)
    convert = _converter(item)
    if convert is None:
        return check
    return lambda values: [
        _converted(f"[{place}]", value, convert) for place, value in enumerate(check(values))
    ]


def _type_converter(plain: type) -> Convert:
    name, fits = _JSON_TYPES[plain]

    def convert(value: Any) -> Any:
        if not fits(value):
            raise Misfit(f"must be {name}, not {safe(repr(value)[:60])}")
        return value

    return convert


def _model_converter(model: Any) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return model.model_validate(value)
        except ValueError as error:  # pydantic.ValidationError is one
            problems = error.errors() if hasattr(error, "errors") else []
            shown = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in problems[:3]
            )
            raise Misfit(safe(shown or str(error))) from None

    return convert


def _dataclass_converter(record: Any) -> Convert:
    binding: list[Binding] = []

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Misfit(f"must be an object, not {safe(repr(value)[:60])}")
        if not binding:  # at first use: a dataclass may refer to itself
            bound = bind(record, takes_job=False)
            binding.append(dataclasses.replace(bound, whole=None))
        try:
            return record(**binding[0].arguments(value))
        except (TypeError, ValueError) as error:  # from its own __post_init__
            raise Misfit(f"{record.__name__}: {safe(str(error))}") from None

    return convert
