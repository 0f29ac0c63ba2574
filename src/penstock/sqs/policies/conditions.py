"""Conditions of policies: one operator, one key of the request, and the allowed or forbidden values.

Values are parsed once, with the policy. A key that the request does not have fails a positive operator, satisfies a
negated one, and satisfies any operator that ends in `IfExists`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.sqs.policies.wildcard import ValueOf, matches, pattern_of, text_of

Context = Mapping[str, Sequence[str]]
"""The facts about a request: keys in lower case, each with its values."""
Quantifier = Literal["one", "any", "all"]

_FOR_ANY, _FOR_ALL, _IF_EXISTS = "ForAnyValue:", "ForAllValues:", "IfExists"
_NUMBER_CHARACTERS = 64


class BadCondition(ValueError):
    """A condition that is not allowed in policies."""


class Operator(NamedTuple):
    """How values are read when the policy is parsed and the request evaluated, and how they are compared."""

    prepare: Callable[[str], Any]
    read: Callable[[str], Any]
    compare: Callable[[Any, Any], bool]
    negated: bool = False
    resolve: Callable[[str, ValueOf | None], str | None] | None = None
    """How variables in a value are replaced, for values that may hold them."""


class Condition(msgspec.Struct, frozen=True):
    """One line of a condition block."""

    operator: str
    key: str
    values: tuple[Any, ...]
    quantifier: Quantifier = "one"
    if_exists: bool = False

    def holds(self, context: Context, variables: bool) -> bool:
        """Whether a request satisfies it."""
        present = context.get(self.key, ())
        if self.operator == "Null":
            return any(wanted is (not present) for wanted in self.values)
        row = OPERATORS[self.operator]
        if not present:
            return self.if_exists or self.quantifier == "all" or (row.negated and self.quantifier == "one")
        wanted = (
            self.values if row.resolve is None else _resolved(row.resolve, self.values, context, variables)
        )
        results = [_satisfies(row, wanted, value) for value in present]
        if self.quantifier == "all":
            return all(results)
        # Without a quantifier, several values of a key are as good as their best, or as bad as their worst.
        return all(results) if row.negated and self.quantifier == "one" else any(results)


def _satisfies(row: Operator, wanted: Sequence[Any], value: str) -> bool:
    have = row.read(value)
    if have is None:
        return row.negated
    return any(row.compare(one, have) for one in wanted) is not row.negated


def _resolved(
    resolve: Callable[[str, ValueOf | None], str | None],
    values: Sequence[str],
    context: Context,
    variables: bool,
) -> list[str]:
    value_of = values_in(context) if variables else None
    resolved = (resolve(value, value_of) for value in values)
    return [value for value in resolved if value is not None]


def values_in(context: Context) -> ValueOf:
    """The value of a variable: that of a key with exactly one value."""

    def value_of(name: str) -> str | None:
        present = context.get(name.lower(), ())
        return present[0] if len(present) == 1 else None

    return value_of


# --- parsing ------------------------------------------------------------------------------------------------


def parse_conditions(block: Any) -> tuple[Condition, ...]:
    """The conditions of one statement."""
    if not isinstance(block, dict):
        raise BadCondition("a condition block is an object")
    conditions: list[Condition] = []
    for operator, keys in block.items():
        if not isinstance(keys, dict) or not keys:
            raise BadCondition("an operator needs keys")
        conditions.extend(_parse_condition(operator, key, values) for key, values in keys.items())
    return tuple(conditions)


def _parse_condition(operator: str, key: str, values: Any) -> Condition:
    quantifier: Quantifier = "one"
    name = operator
    if name.startswith(_FOR_ANY):
        quantifier, name = "any", name.removeprefix(_FOR_ANY)
    elif name.startswith(_FOR_ALL):
        quantifier, name = "all", name.removeprefix(_FOR_ALL)
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    texts = [_text(value) for value in (values if isinstance(values, list) else [values])]
    if not texts or not key:
        raise BadCondition("a key needs values")
    if name == "Null" and not if_exists and quantifier == "one":
        prepared: list[Any] = [_boolean(text) for text in texts]
    elif name in OPERATORS:
        prepared = [OPERATORS[name].prepare(text) for text in texts]
    else:
        raise BadCondition(f"no operator {operator[:80]}")
    if None in prepared:
        raise BadCondition(f"a value that {name} cannot compare with")
    return Condition(name, key.lower(), tuple(prepared), quantifier, if_exists)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise BadCondition("a value is a text, a number or a boolean")


# --- values -------------------------------------------------------------------------------------------------


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _number(text: str) -> float | None:
    try:
        number = float(text) if len(text) <= _NUMBER_CHARACTERS else None
    except ValueError:
        return None
    return number if number == number else None


def _date(text: str) -> float | None:
    """ISO 8601, or seconds since 1970."""
    try:
        if len(text) > _NUMBER_CHARACTERS:
            return None
        if text.isascii() and text.isdecimal():
            return float(text)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _in_network(network: Any, address: Any) -> bool:
    return address in network


def _same(text: str) -> str:
    return text


def _matches_arn(pattern: str, arn: str) -> bool:
    """Six parts, each matched alone: a `*` does not reach over a colon, except in the last part."""
    wanted, have = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(have) == 6 and all(map(matches, wanted, have))


def _comparisons(kind: str, read: Callable[[str], Any]) -> dict[str, Operator]:
    return {
        f"{kind}Equals": Operator(read, read, lambda want, have: bool(have == want)),
        f"{kind}NotEquals": Operator(read, read, lambda want, have: bool(have == want), negated=True),
        f"{kind}LessThan": Operator(read, read, lambda want, have: bool(have < want)),
        f"{kind}LessThanEquals": Operator(read, read, lambda want, have: bool(have <= want)),
        f"{kind}GreaterThan": Operator(read, read, lambda want, have: bool(have > want)),
        f"{kind}GreaterThanEquals": Operator(read, read, lambda want, have: bool(have >= want)),
    }


def _both(kind: str, name: str, operator: Operator) -> dict[str, Operator]:
    """An operator and its negation, `StringLike` and `StringNotLike`."""
    return {f"{kind}{name}": operator, f"{kind}Not{name}": operator._replace(negated=True)}


def _same_text(want: str, have: str) -> bool:
    return want == have


def _same_text_in_any_case(want: str, have: str) -> bool:
    return want.casefold() == have.casefold()


OPERATORS: dict[str, Operator] = {
    **_both("String", "Equals", Operator(_same, _same, _same_text, resolve=text_of)),
    **_both("String", "EqualsIgnoreCase", Operator(_same, _same, _same_text_in_any_case, resolve=text_of)),
    **_both("String", "Like", Operator(_same, _same, matches, resolve=pattern_of)),
    **_both("Arn", "Equals", Operator(_same, _same, _matches_arn, resolve=pattern_of)),
    **_both("Arn", "Like", Operator(_same, _same, _matches_arn, resolve=pattern_of)),
    **_comparisons("Numeric", _number),
    **_comparisons("Date", _date),
    "Bool": Operator(_boolean, _boolean, lambda want, have: bool(want is have)),
    "BinaryEquals": Operator(_same, _same, _same_text),
    "IpAddress": Operator(_network, _address, _in_network),
    "NotIpAddress": Operator(_network, _address, _in_network, negated=True),
}
