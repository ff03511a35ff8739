import { Field, TextArea } from "../../components/field.tsx";

export interface Settings {
  readonly system: string;
  /** JSON. */
  readonly tools: string;
  readonly temperature: string;
  readonly maxTokens: string;
}

export const initialSettings: Settings = { system: "", tools: "", temperature: "", maxTokens: "" };

const example = `[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]`;

export function readTools(text: string): { readonly value?: readonly unknown[]; readonly error?: string } {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? { value } : { error: "An array of tools is expected." };
  } catch {
    return { error: "This is not JSON yet." };
  }
}

interface Props {
  readonly settings: Settings;
  readonly onChange: (settings: Settings) => void;
}

export function ChatSettings({ settings, onChange }: Props) {
  const set = (name: keyof Settings) => (event: { target: { value: string } }) =>
    onChange({ ...settings, [name]: event.target.value });
  return (
    <div className="flex flex-col gap-4">
      <TextArea label="System prompt" rows={3} value={settings.system} onChange={set("system")} />
      <div className="grid grid-cols-2 gap-3">
        <Field
          label="Temperature"
          type="number"
          step="0.1"
          min={0}
          max={2}
          placeholder="Default"
          value={settings.temperature}
          onChange={set("temperature")}
        />
        <Field
          label="Max tokens"
          type="number"
          min={1}
          placeholder="Default"
          value={settings.maxTokens}
          onChange={set("maxTokens")}
        />
      </div>
      <TextArea
        label="Tools (JSON)"
        rows={4}
        placeholder={example}
        error={readTools(settings.tools).error}
        value={settings.tools}
        onChange={set("tools")}
      />
    </div>
  );
}
