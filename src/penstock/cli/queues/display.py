"""The display of a queue: as a row, as a page, and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.cli.output import age, moment, moment_json, print_facts, print_line
from penstock.cli.queues.settings import labels, shown
from penstock.config.units import format_size
from penstock.model.reserved_queues import is_reserved
from penstock.model.settings import QueueSettings
from penstock.wire.messages import QueueDescription

HEADINGS = ("queue", "ready", "leased", "delayed", "size", "oldest", "order", "dead letters", "")


def description_json(description: QueueDescription) -> dict[str, Any]:
    """Every field, with its unit in its name."""
    return {
        "name": description.name,
        "queue_id": description.queue_id,
        "created": moment_json(description.created_ms),
        "settings": msgspec.to_builtins(description.settings),
        "statistics": {
            **msgspec.structs.asdict(description.statistics),
            "oldest_sent": moment_json(description.statistics.oldest_sent_ms),
        },
        "damage": description.damage,
        "forecast": description.forecast,
    }


def description_row(description: QueueDescription) -> tuple[str, ...]:
    """One line of `queue list`."""
    statistics, settings = description.statistics, description.settings
    return (
        description.name,
        f"{statistics.ready:,}",
        f"{statistics.leased:,}",
        f"{statistics.delayed:,}",
        format_size(statistics.bytes),
        age(statistics.oldest_sent_ms),
        settings.ordering,
        settings.dead_letter_queue or "–",
        "damaged" if description.damage else "internal" if is_reserved(description.name) else "",
    )


def show_description(description: QueueDescription) -> None:
    """The page of `queue show`."""
    if description.damage:
        print_line(f"queue {description.name} is damaged and fenced: {description.damage}", "bold red")
    if description.forecast:
        print_line(description.forecast, "yellow")
    statistics = description.statistics
    print_facts(
        f"queue {description.name}",
        {
            "created": moment(description.created_ms),
            "id": str(description.queue_id),
        },
    )
    print_facts(
        "messages",
        {
            "ready": f"{statistics.ready:,}",
            "leased": f"{statistics.leased:,}",
            "delayed": f"{statistics.delayed:,}",
            "moving": f"{statistics.moving:,}",
            **_held_facts(description),
            "size": format_size(statistics.bytes),
            "oldest": moment(statistics.oldest_sent_ms),
            "next sequence number": str(statistics.next_sequence),
            "waiting receivers": f"{statistics.waiting_receivers:,}",
        },
    )
    print_facts(
        "since it was created",
        {
            "sent": f"{statistics.sent_total:,}",
            "deleted": f"{statistics.deleted_total:,}",
            "redelivered": f"{statistics.redelivered_total:,}",
            "expired": f"{statistics.expired_total:,}",
            "dead-lettered": f"{statistics.dead_lettered_total:,}",
            "dropped": f"{statistics.dropped_total:,}",
            "purged": f"{statistics.purged_total:,}",
            **_late_facts(description),
            **({"lost in failovers": f"{statistics.lost_total:,}"} if statistics.lost_total else {}),
        },
    )
    if description.settings.lifecycle or statistics.lifecycle_waiting:
        print_facts("lifecycle", _lifecycle_facts(description))
    if description.settings.has_log:
        print_facts("log", _retained_facts(description))
    print_facts(
        "space",
        {
            "segment files": f"{statistics.segment_files:,}",
            "segment bytes": format_size(statistics.segment_bytes),
            "memory": format_size(statistics.memory_bytes),
        },
    )
    print_facts("settings", settings_facts(description.settings))


def _held_facts(description: QueueDescription) -> dict[str, str]:
    """The messages in the window, if there is one, and its watermark."""
    statistics, settings = description.statistics, description.settings
    facts: dict[str, str] = {}
    if settings.sorted:
        facts["held in the window"] = f"{statistics.held:,}"
    if settings.ordering == "clock":
        watermark_ms = statistics.watermark_us // 1000
        facts["watermark"] = moment(watermark_ms) if watermark_ms else "none yet"
    return facts


def _late_facts(description: QueueDescription) -> dict[str, str]:
    """The number of late messages, and where strict queues put them."""
    late, settings = description.statistics.late_total, description.settings
    if not settings.sorted and not late:
        return {}
    place = f", in {description.name}.late" if settings.strict and late else ""
    return {"late": f"{late:,}{place}"}


def _retained_facts(description: QueueDescription) -> dict[str, str]:
    """The contents of the log for readers."""
    statistics = description.statistics
    return {
        "messages": f"{statistics.log_messages:,}",
        "size": format_size(statistics.log_bytes),
        "begins at": str(statistics.log_begin),
        "groups": f"{statistics.log_groups:,}",
    }


def _lifecycle_facts(description: QueueDescription) -> dict[str, str]:
    """How far the log of lifecycles is behind, and what it will never have."""
    statistics = description.statistics
    return {
        "rows that wait": f"{statistics.lifecycle_waiting:,}",
        "rows dropped": f"{statistics.lifecycle_dropped_total:,}",
    }


def settings_facts(settings: QueueSettings) -> dict[str, str]:
    """The settings that mean something for this queue, the way the options of `queue create` take them."""
    return {
        label: shown(setting, getattr(settings, name))
        for name, label, setting in labels()
        if setting.row.applies is None or setting.row.applies(settings)
    }
