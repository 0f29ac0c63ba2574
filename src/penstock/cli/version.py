"""`penstock version`."""

from __future__ import annotations

from penstock.cli.exits import reported
from penstock.cli.parameters import Json


@reported
def version(json: Json = False) -> None:
    """Show the version of this program."""
    import platform

    from penstock import __version__
    from penstock.cli.output import print_json, print_line
    from penstock.wire.messages import PROTOCOL_VERSION

    if json:
        print_json(
            {"version": __version__, "protocol": PROTOCOL_VERSION, "python": platform.python_version()}
        )
    else:
        print_line(
            f"penstock {__version__} (protocol {PROTOCOL_VERSION}, Python {platform.python_version()})"
        )
