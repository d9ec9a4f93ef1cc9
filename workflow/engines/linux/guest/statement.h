/// A statement of the input: a line with a word, then names and values in any order. A missing,
/// unknown or repeated name is fatal, and so is a value of another kind; the message names the line.
#pragma once

#include "common.h"

#include <stdio.h>

struct statement;

/// Read the next line; NULL at the end of the file.
struct statement *statement_read(FILE *file);
/// Require that every name was asked for, and free the statement.
void statement_end(struct statement *statement);

bool statement_is(const struct statement *statement, const char *word);
void statement_refuse(const struct statement *statement, const char *name, const char *reason)
    __attribute__((noreturn));

/// The value of a name: a text; a whole number, or one below a limit; a truth value; any number.
const char *text(struct statement *statement, const char *name);
uint64_t number(struct statement *statement, const char *name);
int number_below(struct statement *statement, const char *name, int limit);
bool flag(struct statement *statement, const char *name);
double real(struct statement *statement, const char *name);

struct numbers {
	uint32_t *number;
	size_t count;
};
/// Numbers of 32 bits, separated by commas.
struct numbers numbers(struct statement *statement, const char *name);
