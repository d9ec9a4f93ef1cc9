"""What is shown of one number or claim: its verdict, its flags, its explanation.

In: rows of the verdict tables. Out: cards, charts and words that several pages print.
"""
