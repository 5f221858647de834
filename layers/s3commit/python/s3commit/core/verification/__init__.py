"""The judgement of a job's manifests, and the plan that they make."""
