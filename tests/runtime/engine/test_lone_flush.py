"""Where a lone flush runs follows what was measured, and notices when things change."""

from penstock.runtime.engine.driver import SAMPLES, TRY_OTHER_EVERY, LoneFlush


def play(choice: LoneFlush, flushes: int, *, inline_seconds: float, thread_seconds: float) -> int:
    """Plays flushes that take so long; returns how many of them ran inline."""
    ran_inline = 0
    for _ in range(flushes):
        inline = choice.runs_inline()
        ran_inline += inline
        choice.took(inline_seconds if inline else thread_seconds, inline=inline)
    return ran_inline


def test_on_an_idle_machine_it_runs_inline() -> None:
    ran_inline = play(LoneFlush(), 1_000, inline_seconds=0.0002, thread_seconds=0.0003)
    assert ran_inline >= 1_000 - 1_000 // TRY_OTHER_EVERY - SAMPLES


def test_where_the_thread_is_quicker_it_is_used() -> None:
    ran_inline = play(LoneFlush(), 1_000, inline_seconds=0.0015, thread_seconds=0.0005)
    assert ran_inline <= 1_000 // TRY_OTHER_EVERY + SAMPLES


def test_a_slow_disk_never_holds_up_the_loop_for_long() -> None:
    ran_inline = play(LoneFlush(), 1_000, inline_seconds=0.010, thread_seconds=0.011)
    assert ran_inline <= 1_000 // TRY_OTHER_EVERY + SAMPLES


def test_it_notices_when_things_change() -> None:
    choice = LoneFlush()
    play(choice, 1_000, inline_seconds=0.0002, thread_seconds=0.0003)
    play(choice, 1_000, inline_seconds=0.004, thread_seconds=0.0006)
    assert play(choice, 640, inline_seconds=0.004, thread_seconds=0.0006) <= 12
    play(choice, SAMPLES * TRY_OTHER_EVERY, inline_seconds=0.0002, thread_seconds=0.0003)
    assert play(choice, 640, inline_seconds=0.0002, thread_seconds=0.0003) >= 628


def test_a_rare_stall_changes_nothing() -> None:
    choice = LoneFlush()
    play(choice, 1_000, inline_seconds=0.0002, thread_seconds=0.0003)
    choice.took(1.0, inline=True)
    assert choice.runs_inline()


def test_a_slow_start_is_soon_forgotten() -> None:
    choice = LoneFlush()
    play(choice, 4, inline_seconds=0.005, thread_seconds=0.001)
    play(choice, 2 * SAMPLES, inline_seconds=0.0002, thread_seconds=0.0003)
    assert play(choice, 63, inline_seconds=0.0002, thread_seconds=0.0003) >= 62
