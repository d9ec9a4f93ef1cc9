"""What each simulator or kernel supports, requires and costs.

In: a scenario, and the sources below `workflow/engines/`. Out: the input file of a program, a
refusal or a cost, and an engine's version and fingerprint. Never here: no scenario of a study is
run, and no study is known. To add an engine, add the folder of its sources, an `Engine` in
`catalogue.py`, its name in `base/model.py`, and the rule that builds it in
`workflow/rules/engines.smk`.
"""
