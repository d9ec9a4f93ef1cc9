"""What each simulator or kernel supports, requires and costs.

In: a scenario, the sources below `workflow/engines/`. Out: a refusal or a cost, an engine's
version and fingerprint. To add an engine, add the folder of its sources, an `Engine` in
`catalogue.py`, its name in `study/model.py`, and the rule that builds it in
`workflow/rules/engines.smk`.
"""
