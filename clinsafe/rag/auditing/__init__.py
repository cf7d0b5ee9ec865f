"""Auditing the judges: how often does a judge, a metric or a hit function call a contradiction supported?"""
