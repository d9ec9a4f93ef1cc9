"""What every chart is drawn with: the theme, a figure and its name, data in display units, lines.

In: results as data frames. Out: `Figure`, with its data and description. It knows no study and no
page.
"""
