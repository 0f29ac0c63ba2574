"""What came of a run, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """Of one scenario: what was done, what clients were told, which promises were broken."""

    scenario: str
    faults: list[str] = field(default_factory=list)
    """As they are counted, in the order in which they happened."""
    violations: list[str] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    settle_seconds: list[float] = field(default_factory=list)
    """After each fault: until everybody served, all replicas were in sync and every client was answered again."""
    longest_silence_seconds: float = 0.0
    """In which no sender of some queue was answered."""
    clients: int = 0
    sqs_clients: int = 0
    seconds: float = 0.0

    @property
    def kinds(self) -> Counter[str]:
        """Faults by what was done."""
        return Counter(fault.split()[0] for fault in self.faults)

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        settled = sorted(self.settle_seconds)
        return {
            "scenario": self.scenario,
            "clients": self.clients,
            "sqs_clients": self.sqs_clients,
            "seconds": round(self.seconds, 1),
            "faults": len(self.faults),
            "kinds": dict(self.kinds),
            "by_kind_and_victim": dict(sorted(Counter(self.faults).items())),
            "messages": self.messages,
            "told_to_try_again": self.refused,
            "settle_seconds": {
                "median": round(settled[len(settled) // 2], 1) if settled else 0.0,
                "longest": round(settled[-1], 1) if settled else 0.0,
            },
            "longest_silence_seconds": round(self.longest_silence_seconds, 1),
            "violations": self.violations,
        }

    def lines(self) -> list[str]:
        """The same for people."""
        facts = self.as_json()
        settled = facts["settle_seconds"]
        counted = ", ".join(f"{count:,} {name}" for name, count in sorted(self.messages.items()))
        refused = ", ".join(f"{name} {count:,}" for name, count in sorted(self.refused.items())) or "never"
        return [
            f"{self.scenario}: {len(self.faults)} in {self.seconds:.0f} s under {self.clients} clients",
            f"  clients: {self.sqs_clients} boto3, {self.clients - self.sqs_clients} native",
            *(f"  {count:4}  {name}" for name, count in facts["by_kind_and_victim"].items()),
            f"  messages: {counted}",
            f"  told to try again: {refused}",
            f"  everybody well again: median {settled['median']} s, longest {settled['longest']} s",
            f"  longest time without an answered send on a queue: {facts['longest_silence_seconds']} s",
            f"  promises broken: {len(self.violations)}",
        ]
