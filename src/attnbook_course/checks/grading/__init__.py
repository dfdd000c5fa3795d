"""Grading a class: the students' code runs in a sandbox, the checks run outside of it.

Start with attnbook_course.checks.grading.command. A check asks a student's function through a pipe
(student, worker, pipe), so nothing that a notebook does can change a check, see what it expects or
write a grade.
"""
