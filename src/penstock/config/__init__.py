"""Configuration: one frozen, validated object per role, read from a TOML file, the environment and flags."""

from penstock.config.address import Address as Address
from penstock.config.frontend import FrontendConfig as FrontendConfig
from penstock.config.metadata_server import MetadataServerConfig as MetadataServerConfig
from penstock.config.node import NodeConfig as NodeConfig
from penstock.config.problems import ConfigurationError as ConfigurationError
from penstock.config.problems import Problem as Problem
from penstock.config.roles import ROLES as ROLES
from penstock.config.roles import likely_role as likely_role
from penstock.config.roles import load_config as load_config
from penstock.config.serve import ServeConfig as ServeConfig
from penstock.config.sources import load_frontend_config as load_frontend_config
from penstock.config.sources import load_metadata_server_config as load_metadata_server_config
from penstock.config.sources import load_node_config as load_node_config
from penstock.config.sources import load_serve_config as load_serve_config
