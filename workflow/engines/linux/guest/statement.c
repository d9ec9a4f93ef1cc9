#define _GNU_SOURCE
#include "statement.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PAIRS 40

struct pair {
	const char *name, *value;
	bool used;
};

struct statement {
	int line;   /* counts from 1 */
	char *word; /* the line, cut at its spaces */
	int pairs;
	struct pair pair[MOST_PAIRS];
};

static int lines;

void statement_refuse(const struct statement *statement, const char *name, const char *reason)
{
	die("input, line %d: %s: %s: %s", statement->line, statement->word, name, reason);
}

struct statement *statement_read(FILE *file)
{
	struct statement *statement = allocate(1, sizeof(*statement));
	char *rest = NULL;
	const char *name;
	size_t room = 0;

	if (getline(&statement->word, &room, file) < 0) {
		free(statement->word);
		free(statement);
		return NULL;
	}
	statement->line = ++lines;
	if (!strtok_r(statement->word, " \n", &rest))
		die("input, line %d: empty", statement->line);
	while ((name = strtok_r(NULL, " \n", &rest))) {
		const char *value = strtok_r(NULL, " \n", &rest);

		if (!value)
			statement_refuse(statement, name, "no value");
		if (statement->pairs == MOST_PAIRS)
			statement_refuse(statement, name, "too many names");
		statement->pair[statement->pairs++] = (struct pair){name, value, false};
	}
	return statement;
}

void statement_end(struct statement *statement)
{
	for (int i = 0; i < statement->pairs; i++)
		if (!statement->pair[i].used)
			statement_refuse(statement, statement->pair[i].name, "unknown or repeated");
	free(statement->word);
	free(statement);
}

bool statement_is(const struct statement *statement, const char *word)
{
	return !strcmp(statement->word, word);
}

const char *text(struct statement *statement, const char *name)
{
	for (int i = 0; i < statement->pairs; i++)
		if (!strcmp(statement->pair[i].name, name)) {
			statement->pair[i].used = true;
			return statement->pair[i].value;
		}
	statement_refuse(statement, name, "missing");
}

uint64_t number(struct statement *statement, const char *name)
{
	const char *value = text(statement, name);

	if (value[strspn(value, "0123456789")])
		statement_refuse(statement, name, "not a whole number");
	return strtoull(value, NULL, 10);
}

struct numbers numbers(struct statement *statement, const char *name)
{
	const char *rest = text(statement, name);
	struct numbers list = {allocate(strlen(rest), sizeof(*list.number)), 0};

	if (rest[strspn(rest, "0123456789,")])
		statement_refuse(statement, name, "not whole numbers");
	while (*rest) {
		char *end;

		list.number[list.count++] = (uint32_t)strtoul(rest, &end, 10);
		if (end == rest)
			statement_refuse(statement, name, "a number is missing");
		rest = *end ? end + 1 : end;
	}
	return list;
}

int number_below(struct statement *statement, const char *name, int limit)
{
	uint64_t value = number(statement, name);

	if (value >= (uint64_t)limit)
		statement_refuse(statement, name, "too large");
	return (int)value;
}

bool flag(struct statement *statement, const char *name)
{
	return number_below(statement, name, 2);
}

double real(struct statement *statement, const char *name)
{
	char *end;
	double value = strtod(text(statement, name), &end);

	if (*end)
		statement_refuse(statement, name, "not a number");
	return value;
}
