"""Writing: conversion of Arrow data, row groups, and metadata that pyarrow's writer leaves out."""
