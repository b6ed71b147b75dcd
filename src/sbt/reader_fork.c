/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers in a child of fork(). Other threads of the parent, such as those of Arrow streams, may be
 * loading something with a reader's lock held, and are not in the child: fork() waits for them.
 */
#include <pthread.h>

#include "sbt/reader_internal.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ts_reader *list; /* all readers */

static void lock_all(void)
{
	pthread_mutex_lock(&list_lock);
	for (struct ts_reader *reader = list; reader; reader = reader->next)
		pthread_mutex_lock(&reader->lock);
}

static void unlock_all(void)
{
	for (struct ts_reader *reader = list; reader; reader = reader->next)
		pthread_mutex_unlock(&reader->lock);
	pthread_mutex_unlock(&list_lock);
}

static void install(void)
{
	pthread_atfork(lock_all, unlock_all, unlock_all);
}

void sbt_reader_list(struct ts_reader *reader)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	pthread_mutex_lock(&list_lock);
	reader->next = list;
	if (list)
		list->previous = reader;
	list = reader;
	pthread_mutex_unlock(&list_lock);
}

void sbt_reader_unlist(struct ts_reader *reader)
{
	pthread_mutex_lock(&list_lock);
	if (reader->previous)
		reader->previous->next = reader->next;
	else
		list = reader->next;
	if (reader->next)
		reader->next->previous = reader->previous;
	pthread_mutex_unlock(&list_lock);
}
