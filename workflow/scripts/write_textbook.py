"""Write data/textbook.csv: the values of the textbook set-up at each design point.

python workflow/scripts/write_textbook.py
"""

from pathlib import Path

from replication.base.table import write_table
from replication.design.textbook_table import TEXTBOOK, TEXTBOOK_COLUMNS, textbook_rows

if __name__ == "__main__":
    write_table(TEXTBOOK, textbook_rows(Path()), TEXTBOOK_COLUMNS)
