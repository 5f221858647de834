"""EventBridge: schedules are no patterns, and targets get their events."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

from typing import Any

from s3commit.local.moto_patches.registry import Patcher, patch


@patch
def rules_reach_functions_and_machines(patcher: Patcher) -> None:
    """A matching event is sent to each target, functions, state machines and topics among them.

    AWS: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-targets.html. moto: raises
    NotImplementedError for them (and then skips the targets that come after), and ignores Input.
    """
    from moto.events.models import Rule

    host = patcher.host

    def make(original: Any) -> Any:
        def send_to_targets(self: Any, event: Any, transform_input: bool = True) -> None:
            if not self.event_pattern.matches_event(event):
                return
            ours = [t for t in self.targets if _service(t) in {"lambda", "states", "sqs", "sns"}]
            for target in ours:
                host.deliver(target, dict(event))
            if len(ours) < len(self.targets):
                rest = object.__new__(type(self))
                rest.__dict__.update(self.__dict__)
                rest.targets = [t for t in self.targets if t not in ours]
                original(rest, event, transform_input)

        return send_to_targets

    patcher.replace(Rule, "send_to_targets", make)


@patch
def scheduled_rules_match_no_event(patcher: Patcher) -> None:
    """A rule with a schedule and no pattern matches no event; a disabled rule matches none either.

    AWS: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html
    and https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_DisableRule.html. moto: no
    pattern matches every event, so a rule of ``rate(1 hour)`` runs for every event of any source.
    """
    from moto.events.models import Rule

    def make(original: Any) -> Any:
        def send_to_targets(self: Any, event: Any, transform_input: bool = True) -> None:
            if self.event_pattern.get_pattern() and self.state != "DISABLED":
                original(self, event, transform_input)

        return send_to_targets

    patcher.replace(Rule, "send_to_targets", make)


def _service(target: dict[str, Any]) -> str:
    return str(target["Arn"]).split(":")[2]
