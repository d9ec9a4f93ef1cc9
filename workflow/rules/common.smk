# What the rules share: whose files are meant.


def plan_of(wildcards):
    """Return the plan that the files of a data folder follow."""
    return PLANS.of(wildcards.data)


def own(pattern):
    """Return a pattern of files, as those of this run's data folder."""
    return expand(pattern, **OWN, allow_missing=True)
