"""What is shown of one compilation, in words and numbers, before it becomes text, HTML or JSON.

Each module makes the rows of one section from a compiled function (known by the protocols in
`reads`) and its measurements; `view` puts them together.  No module knows any markup.
"""
