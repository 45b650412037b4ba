"""The planner: candidates, retained, placed, plan."""
