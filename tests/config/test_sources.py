"""Where configuration comes from, which source wins, and how every mistake is explained."""

from dataclasses import fields
from pathlib import Path

import pytest

from penstock.config import (
    Address,
    ConfigurationError,
    FrontendConfig,
    MetadataServerConfig,
    NodeConfig,
    ServeConfig,
    likely_role,
    load_config,
    load_frontend_config,
    load_node_config,
    load_serve_config,
)
from penstock.config.frontend import OPTIONS as FRONTEND_OPTIONS
from penstock.config.metadata_server import OPTIONS as METADATA_SERVER_OPTIONS
from penstock.config.node import OPTIONS as NODE_OPTIONS
from penstock.config.option import Options
from penstock.config.roles import ROLES as ROLES_OF_PENSTOCK
from penstock.config.serve import OPTIONS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def problems_of(text: str, tmp_path: Path, environment: dict[str, str] | None = None) -> list[str]:
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_serve_config(file, environment or {})
    return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]


def test_without_any_source_the_defaults_hold() -> None:
    assert load_serve_config(None, {}) == ServeConfig()


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        """
        [native]
        listen = "127.0.0.1:1"
        max_connections = 10
        [storage]
        directory = "from-file"
        durability = "os"
        journal_file_size = "32MiB"
        [log]
        level = "debug"
        """
    )
    environment = {"PENSTOCK_NATIVE_LISTEN": "127.0.0.1:2", "PENSTOCK_STORAGE_DIRECTORY": "from-environment"}
    config = load_serve_config(file, environment, {"listen": "127.0.0.1:3"})
    assert config == ServeConfig(
        listen=Address("127.0.0.1", 3),
        data_directory="from-environment",
        durability="os",
        journal_file_bytes=32 << 20,
        log_level="debug",
        max_connections=10,
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("durability = 'never'", 'storage.durability: "never" is not allowed; use one of "sync", "os"'),
        ("durability = true", 'storage.durability: true is not allowed; use one of "sync", "os"'),
        ("cache_size = 'big'", "storage.cache_size: 'big' is not a size; write 4096, 64KiB, 1MiB or 2GiB"),
        ("cache_size = 1.5", "storage.cache_size: 1.5 is not a size from 0B to 1TiB"),
        ("cache_size = true", "storage.cache_size: true is not a size from 0B to 1TiB"),
        ("journal_file_size = '1KiB'", 'storage.journal_file_size: "1KiB" is out of bounds; use a size from'),
        ("directory = ''", 'storage.directory: "" is not the path of a directory'),
        ("directory = 3", "storage.directory: 3 is not the path of a directory"),
        ("durabilty = 'sync'", "storage.durabilty: unknown key; did you mean storage.durability?"),
        (
            "max_connections = 1",
            "storage.max_connections: unknown key; did you mean metadata.max_connections or native.max_connections or sqs.max_connections?",
        ),
        ("colour = 'red'", "storage.colour: unknown key; known are clock.drift_ppm, clock.source"),
    ],
)
def test_a_bad_line_is_explained_with_its_place(line: str, problem: str, tmp_path: Path) -> None:
    (found,) = problems_of(f"# a comment\n[storage]\n\n{line}\n", tmp_path)
    assert found.startswith(f"penstock.toml:4: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[native]\nlisten = 9326\n", "penstock.toml:2: native.listen: 9326 is not text; use HOST:PORT"),
        ("[native]\nlisten = 'a:b'\n", "penstock.toml:2: native.listen: 'a:b' has the port 'b'"),
        (
            "[native]\nhello_timeout = '1y'\n",
            "penstock.toml:2: native.hello_timeout: '1y' has the unknown unit",
        ),
        ("[native]\nhello_timeout = 0\n", "penstock.toml:2: native.hello_timeout: 0 is out of bounds"),
        (
            "[native]\nmax_connections = '1k'\n",
            'penstock.toml:2: native.max_connections: "1k" is not a whole',
        ),
        ("native.max_connections = 0\n", "penstock.toml:1: native.max_connections: 0 is out of bounds"),
        ("log = {level = 'loud'}\n", 'penstock.toml:1: log.level: "loud" is not allowed'),
        (
            "listen = ':1'\n",
            "penstock.toml:1: listen: unknown key; did you mean metadata.listen or monitoring.listen or native.listen or sqs.listen?",
        ),
        ("[native]\nlisten = 'nope'\n", "penstock.toml:2: native.listen: 'nope' names no port; write 127."),
        ("[sqs]\nlisten = 'no'\n", "penstock.toml:2: sqs.listen: 'no' names no port"),
        ("[storge]\n", "penstock.toml:1: storge: unknown table; did you mean storage?"),
        (
            "[storage]\n[storage.cold]\n",
            "penstock.toml:2: storage.cold: unknown table; known are clock, cluster, frontend",
        ),
        (
            "x = {}\n",
            "penstock.toml:1: x: unknown table; known are clock, cluster, frontend, log, metadata, monitoring, native",
        ),
        ("[sqs]\naccount = 12\n", "penstock.toml:2: sqs.account: 12 is not an account id: twelve digits"),
        ("[sqs]\nregion = 'US'\n", 'penstock.toml:2: sqs.region: "US" is not the name of a region'),
        ("[sqs]\npublic_url = 'x'\n", 'penstock.toml:2: sqs.public_url: "x" is not a URL that begins'),
        ("[sqs]\npublic_url = 'http://h:x'\n", "penstock.toml:2: sqs.public_url: "),
        ("[sqs]\ntls_key = 'k'\n", "penstock.toml: sqs.tls_certificate: is missing"),
        ("[sqs]\ntls_certificate = 'c'\n", "penstock.toml: sqs.tls_key: is missing"),
        ("[native]\ntls_certificate = 'c'\n", "penstock.toml: native.tls_key: is missing"),
        ("[native]\ntls_key = 'k'\n", "penstock.toml: native.tls_certificate: is missing"),
        ("[sqs]\nlisten = ':9326'\n", "penstock.toml: sqs.listen: 127.0.0.1:9326 is where native.listen"),
        ("[frontend]\nbackend = 'host:0'\n", "penstock.toml:2: frontend.backend: "),
        ("[log\n", "penstock.toml:1: is not TOML: "),
        ("[log]\nlevel = \n", "penstock.toml:2: is not TOML: Invalid value"),
        (
            "[storage]\njournal_file_size = '1GiB'\n",
            "penstock.toml: storage.checkpoint_size: (134217728 bytes) must be at least storage.journal_file_size",
        ),
        (
            "[storage]\njournal_file_size = 50_000_001\n",
            "penstock.toml: storage.journal_file_size: 50000001 is not a multiple of 4096 bytes",
        ),
    ],
)
def test_a_bad_file_is_explained(text: str, problem: str, tmp_path: Path) -> None:
    (found,) = problems_of(text, tmp_path)
    assert found.startswith(problem)


def test_an_empty_table_that_is_known_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text("[sqs]\n[log]\n")
    assert load_serve_config(file, {}) == ServeConfig()


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    text = "[log]\nlevel = 'loud'\nformt = 'text'\n[native]\nmax_connections = 0\n"
    environment = {"PENSTOCK_STORAGE_DURABILITY": "maybe", "PENSTOCK_STORAGE_CASHE_SIZE": "1MiB"}
    found = problems_of(text, tmp_path, environment)
    assert [line.split(" ")[0] for line in found] == [
        "penstock.toml:2:",
        "penstock.toml:3:",
        "penstock.toml:5:",
        "PENSTOCK_STORAGE_CASHE_SIZE:",
        "PENSTOCK_STORAGE_DURABILITY:",
    ]
    assert "did you mean PENSTOCK_STORAGE_CACHE_SIZE?" in found[3]


def test_variables_of_other_parts_of_penstock_are_left_alone() -> None:
    assert load_serve_config(None, {"PENSTOCK_URL": "penstock://127.0.0.1:1"}) == ServeConfig()


def test_a_bad_flag_is_named_by_its_flag() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_serve_config(None, {}, {"durability": "maybe"})
    assert str(caught.value).startswith('--durability: storage.durability: "maybe" is not allowed')


def test_what_cannot_be_read_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        load_serve_config(tmp_path / "missing.toml", {})
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_serve_config(tmp_path, {})
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"[log]\n\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"binary\.toml:2: is not UTF-8"):
        load_serve_config(binary, {})
    binary.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(ConfigurationError, match="is longer than"):
        load_serve_config(binary, {})


ROLES = pytest.mark.parametrize(
    ("role", "options"),
    [
        (ServeConfig, OPTIONS),
        (FrontendConfig, FRONTEND_OPTIONS),
        (MetadataServerConfig, METADATA_SERVER_OPTIONS),
        (NodeConfig, NODE_OPTIONS),
    ],
)


@ROLES
def test_every_field_has_an_option_and_its_default_is_allowed(
    role: type[ServeConfig] | type[FrontendConfig] | type[MetadataServerConfig] | type[NodeConfig],
    options: Options,
) -> None:
    assert {attribute for attribute, _ in options.values()} == {entry.name for entry in fields(role)}
    for attribute, option in options.values():
        default = getattr(role(), attribute)
        assert option.kind.read(option.kind.write(default)) == default


@ROLES
def test_the_reference_names_every_option_with_its_default_and_its_variable(
    role: type[ServeConfig] | type[FrontendConfig] | type[MetadataServerConfig] | type[NodeConfig],
    options: Options,
) -> None:
    text = REFERENCE.read_text()
    for attribute, option in options.values():
        default = option.kind.write(getattr(role(), attribute))
        assert f"### `{option.key}`" in text
        section = text.split(f"### `{option.key}`")[1].split("\n#")[0]
        assert f"`{default}`" in section, option.key
        assert f"`{option.variable}`" in section, option.key
        assert option.flag is None or f"`{option.flag}`" in section, option.key


def test_a_front_end_does_not_show_its_figures_where_clients_connect() -> None:
    with pytest.raises(ConfigurationError, match=r"frontend\.monitoring_listen.* is where clients connect"):
        load_frontend_config(None, {}, {"monitoring_listen": "127.0.0.1:9324"})


def test_the_front_end_takes_its_part_of_a_file_that_is_shared(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        """
        [storage]
        directory = "/data"
        cache_size = "1GiB"
        [frontend]
        backend = "queues.example:9326"
        [sqs]
        listen = "127.0.0.1:1"
        public_url = "https://sqs.example/"
        [usage]
        directory = "/usage"
        """
    )
    config = load_frontend_config(file, {"PENSTOCK_NATIVE_LISTEN": "127.0.0.1:1"})
    assert config == FrontendConfig(
        data_directory="/data",
        backend=Address("queues.example", 9326),
        sqs_listen=Address("127.0.0.1", 1),
        sqs_public_url="https://sqs.example",
        usage_directory="/usage",
    )
    assert config.metadata_path == "/data/metadata.sqlite"
    assert config.metadata_key_path == "/data/metadata.key"
    assert config.usage_path == "/usage"
    assert load_serve_config(file, {}).cache_bytes == 1 << 30


def test_a_front_end_listens_somewhere(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text("sqs.listen = 'off'")
    assert load_serve_config(file, {}).sqs_listen is None
    with pytest.raises(
        ConfigurationError, match=r"sqs\.listen: is off, and a front end that listens nowhere"
    ):
        load_frontend_config(file, {})
    flags = {"sqs_listen": "127.0.0.1:0"}
    assert load_frontend_config(file, {}, flags).sqs_listen == Address("127.0.0.1", 0)


def test_roles_that_have_different_keys_for_the_same_thing_each_take_their_own(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        '[monitoring]\nlisten = "127.0.0.1:1111"\n[frontend]\nmonitoring_listen = "127.0.0.1:2222"\n'
    )
    assert str(load_serve_config(file, {}).monitoring_listen) == "127.0.0.1:1111"
    assert str(load_frontend_config(file, {}).monitoring_listen) == "127.0.0.1:2222"
    with pytest.raises(ConfigurationError) as caught:
        load_serve_config(None, {}, {"monitoring_listen": "nowhere"})
    assert [problem.field for problem in caught.value.problems] == ["monitoring.listen"]


@pytest.mark.parametrize(
    ("text", "environment", "role"),
    [
        ("", {}, "serve"),
        ("sqs.region = 'eu-west-1'", {}, "serve"),
        ("frontend.backend = 'queues.example:9326'", {}, "frontend"),
        ("sqs.region = 'eu-west-1'", {"PENSTOCK_FRONTEND_BACKEND": "queues.example:9326"}, "frontend"),
        ("frontend.backend = 'queues.example:9326'\nstorage.durability = 'os'", {}, "serve"),
        ("frontend.backend = 'queues.example:9326'\nstorage.directory = 'data'", {}, "frontend"),
        ("frontend.backend = 7", {}, "serve"),
        ("metadata.organisation = 'replicated'", {}, "metadata"),
        ("cluster.zone = 'a'\nstorage.durability = 'os'", {}, "node"),
        ("not TOML", {}, "serve"),
    ],
)
def test_the_role_is_the_one_that_alone_can_be_told_so(
    tmp_path: Path, text: str, environment: dict[str, str], role: str
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    assert likely_role(file, environment) == role


def test_every_role_can_be_loaded() -> None:
    assert {name: type(load_config(name, None, {})) for name in ROLES_OF_PENSTOCK} == {
        "serve": ServeConfig,
        "frontend": FrontendConfig,
        "metadata": MetadataServerConfig,
        "node": NodeConfig,
    }


def test_trusted_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text('[sqs]\ntrusted_proxies = ["10.0.0.5", "10.1.0.0/16", "fd00::/8"]\n')
    assert load_serve_config(file, {}).sqs_trusted_proxies == ("10.0.0.5", "10.1.0.0/16", "fd00::/8")
    given = {"PENSTOCK_SQS_TRUSTED_PROXIES": "10.0.0.5, 10.1.0.0/16"}
    assert load_frontend_config(None, given).sqs_trusted_proxies == ("10.0.0.5", "10.1.0.0/16")
    assert load_serve_config(None, {"PENSTOCK_SQS_TRUSTED_PROXIES": "none"}).sqs_trusted_proxies is None
    for wrong in ("10.0.0.1/16", "proxy.example", "", "10.0.0.5,"):
        with pytest.raises(ConfigurationError, match="is no address and no network"):
            load_serve_config(None, {"PENSTOCK_SQS_TRUSTED_PROXIES": wrong})


def test_certificates_of_a_cluster_come_with_their_key_and_authority() -> None:
    given = {"PENSTOCK_CLUSTER_TLS_CERTIFICATE": "node.pem", "PENSTOCK_CLUSTER_TLS_KEY": "node.key"}
    with pytest.raises(
        ConfigurationError, match=r"cluster.tls_ca: is missing; cluster.tls_certificate needs it"
    ):
        load_node_config(None, given)
    config = load_node_config(None, given | {"PENSTOCK_CLUSTER_TLS_CA": "ca.pem"})
    assert (config.cluster_tls_certificate, config.cluster_tls_ca) == ("node.pem", "ca.pem")
