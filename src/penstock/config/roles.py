"""The roles of a Penstock process: the options of each, and the likely role of a configuration file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.config.frontend import FrontendConfig
from penstock.config.metadata_server import MetadataServerConfig
from penstock.config.node import NodeConfig
from penstock.config.option import Options, options_of
from penstock.config.serve import ServeConfig
from penstock.config.sources import (
    given_attributes,
    load_frontend_config,
    load_metadata_server_config,
    load_node_config,
    load_serve_config,
)

RoleConfig = ServeConfig | FrontendConfig | MetadataServerConfig | NodeConfig

SERVE, FRONTEND, METADATA, NODE = "serve", "frontend", "metadata", "node"
ROLES: dict[str, Options] = {
    SERVE: options_of(ServeConfig),
    FRONTEND: options_of(FrontendConfig),
    METADATA: options_of(MetadataServerConfig),
    NODE: options_of(NodeConfig),
}
"""All options, by the command that runs the role."""

Load = Callable[[Path | None, Mapping[str, str] | None], RoleConfig]
_LOADERS: dict[str, Load] = {
    SERVE: load_serve_config,
    FRONTEND: load_frontend_config,
    METADATA: load_metadata_server_config,
    NODE: load_node_config,
}


def load_config(
    role: str, file: Path | None = None, environment: Mapping[str, str] | None = None
) -> RoleConfig:
    """The configuration of a role; raises `ConfigurationError` with everything that is wrong."""
    return _LOADERS[role](file, environment)


def likely_role(file: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The only role with an option that no other role has; the server, unless there is exactly one such role."""
    given = given_attributes(file, environment)
    found = [role for role in ROLES if given & _only_of(role)]
    # a node stores as a server does, so only options that a server does not have count
    if found == [SERVE, NODE]:
        return NODE
    return found[0] if len(found) == 1 else SERVE


def _only_of(role: str) -> set[str]:
    """The options that no other role has."""
    own = {attribute for attribute, _ in ROLES[role].values()}
    alike = {SERVE: NODE}.get(role)
    others = (options for other, options in ROLES.items() if other not in (role, alike))
    return own.difference(attribute for options in others for attribute, _ in options.values())
