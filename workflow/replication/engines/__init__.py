"""What each simulator or kernel supports, needs and costs, and which ns-3 is run.

In: a scenario, the sources below `workflow/engines/`. Out: a refusal or a cost, an engine's
version and fingerprint. To add an engine, add its sources as a folder there, an `Engine` in
`catalogue.py`, its name in `study/model.py`, and the rule that builds it in
`workflow/rules/engines.smk`.
"""
