"""The page in the browser: the documents of `status`, `show`, `log` and `fsck`, drawn."""
