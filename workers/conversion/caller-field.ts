/**
 * The caller's own name for a field of the chat request that theirs became. What is inside of a field stands elsewhere
 * in another format: there the field is named and no more.
 */
export const ownFieldBy =
  (names: Readonly<Record<string, string>>) =>
  (chatField: string): string => {
    const [field = chatField] = /^\w+/.exec(chatField) ?? [];
    if (Object.hasOwn(names, field)) return names[field] ?? field;
    return chatField;
  };
