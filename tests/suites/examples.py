"""An example of a type, as JSON: what a provider might answer where a client library expects that type."""

import datetime
import enum
import types
import typing

import pydantic
import typing_extensions

# Deeper than this, only what a model requires.
OPTIONAL_DEPTH_MAX = 3
# Deeper than this, lists and maps are empty, so that a type which contains itself ends.
DEPTH_MAX = 12

SCALARS = {
    str: "text",
    int: 1,
    float: 1.5,
    bool: True,
    object: "anything",
    typing.Any: "anything",
    type(None): None,
    datetime.datetime: "2026-11-26T08:30:00Z",
    datetime.date: "2026-11-26",
    pydantic.StrictStr: "text",
    pydantic.StrictInt: 1,
    pydantic.StrictFloat: 1.5,
    pydantic.StrictBool: True,
}


def example_of(kind, depth=0):
    """An example of `kind`, which is anything that may stand in an annotation."""
    if isinstance(kind, typing_extensions.TypeAliasType):
        return example_of(kind.__value__, depth)
    if isinstance(kind, typing.TypeVar):
        return example_of(kind.__bound__ or object, depth)
    if typing.get_origin(kind) is not typing.Annotated and is_scalar(kind):
        return SCALARS[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return example_of(arguments[0], depth)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        [first, *_] = [argument for argument in arguments if argument is not type(None)]
        return example_of(first, depth)
    if origin is dict or kind is dict:
        return {"key": example_of(arguments[1], depth + 1)} if arguments and depth < DEPTH_MAX else {}
    if origin is not None and issubclass(origin, typing.Iterable) and not issubclass(origin, pydantic.BaseModel):
        return [example_of(arguments[0], depth + 1)] if depth < DEPTH_MAX else []
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return of_model(kind, depth)
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind)
        return {name: example_of(hints[name], depth + 1) for name in kind.__required_keys__}
    raise TypeError(f"no example of {kind!r}")


def is_scalar(kind):
    try:
        return kind in SCALARS
    except TypeError:  # not hashable
        return False


def of_model(model, depth):
    return {
        field.alias or name: example_of(field.annotation, depth + 1)
        for name, field in model.model_fields.items()
        if field.is_required() or depth < OPTIONAL_DEPTH_MAX
    }
