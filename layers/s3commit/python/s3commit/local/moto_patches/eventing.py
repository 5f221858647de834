"""EventBridge: a schedule is no pattern."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

from typing import Any

from s3commit.local.moto_patches.registry import Patcher, patch


@patch
def scheduled_rules_match_no_event(patcher: Patcher) -> None:
    """A rule with a schedule and no pattern matches no event.

    AWS: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html.
    moto: no pattern matches every event, and PutEvents, which a machine calls at the end of each
    job, would call the sweep.
    """
    from moto.events.models import Rule

    def make(original: Any) -> Any:
        def send_to_targets(self: Any, event: Any, transform_input: bool = True) -> None:
            if self.event_pattern.get_pattern():
                original(self, event, transform_input)

        return send_to_targets

    patcher.replace(Rule, "send_to_targets", make)
