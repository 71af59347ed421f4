import { Button, InputNumber, Segmented, Switch } from 'antd';
import { useState, type ReactNode } from 'react';
import { useText } from '../../app/i18n.tsx';
import { usePreferences, type Density, type Language, type Preferences, type ThemeChoice } from '../../app/preferences.ts';
import { useSession } from '../../app/session.tsx';
import { Confirm, Facts, Page, Section } from '../../parts/index.ts';
import { absoluteText, milliseconds } from '../../parts/time.ts';

function Setting({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="pl-setting" role="group" aria-label={label}>
      <span>{label}</span>
      {children}
    </div>
  );
}

function Appearance() {
  const t = useText();
  const [{ language, theme, density }, set] = usePreferences();
  return (
    <Section title={t.settings.appearance} hint={t.settings.appearanceHint}>
      <Setting label={t.settings.language}>
        <Segmented<Language>
          value={language}
          onChange={(value) => set({ language: value })}
          options={[
            { value: 'en', label: 'English' },
            { value: 'zh', label: '中文' },
          ]}
        />
      </Setting>
      <Setting label={t.settings.theme}>
        <Segmented<ThemeChoice>
          value={theme}
          onChange={(value) => set({ theme: value })}
          options={(['light', 'dark', 'system'] as const).map((value) => ({ value, label: t.common.theme[value] }))}
        />
      </Setting>
      <Setting label={t.settings.density}>
        <Segmented<Density>
          value={density}
          onChange={(value) => set({ density: value })}
          options={(['compact', 'comfortable'] as const).map((value) => ({ value, label: t.settings[value] }))}
        />
      </Setting>
    </Section>
  );
}

function Logs() {
  const t = useText();
  const [{ logs }, set] = usePreferences();
  const change = (patch: Partial<Preferences['logs']>) => set({ logs: { ...logs, ...patch } });
  return (
    <Section title={t.settings.logs} hint={t.settings.logsHint}>
      <Setting label={t.settings.wrap}>
        <Switch checked={logs.wrap} onChange={(wrap) => change({ wrap })} aria-label={t.settings.wrap} />
      </Setting>
      <Setting label={t.settings.stamps}>
        <Switch checked={logs.stamps} onChange={(stamps) => change({ stamps })} aria-label={t.settings.stamps} />
      </Setting>
      <Setting label={t.settings.fontSize}>
        <InputNumber min={10} max={20} value={logs.fontSize} suffix="px" onChange={(value) => change({ fontSize: value ?? 12 })} aria-label={t.settings.fontSize} />
      </Setting>
      <Setting label={t.settings.tail}>
        <InputNumber min={100} max={100_000} step={1000} value={logs.tail} onChange={(value) => change({ tail: value ?? 5000 })} aria-label={t.settings.tail} />
      </Setting>
    </Section>
  );
}

function SessionFacts() {
  const t = useText();
  const { me, logout } = useSession();
  const ends = milliseconds(me?.expires);
  const [isAsking, setAsking] = useState(false);
  return (
    <Section title={t.settings.session} hint={t.settings.sessionHint} extra={<Button onClick={() => void logout()}>{t.settings.logOut}</Button>}>
      <Confirm open={isAsking} title={t.settings.logOutEverywhere} action={t.settings.logOut} isDangerous onConfirm={() => logout(true)} onCancel={() => setAsking(false)}>
        <p>{t.settings.logOutEverywhereHint}</p>
      </Confirm>
      <Facts
        items={[
          [t.settings.person, <strong key="name">{me?.name}</strong>],
          [t.settings.cluster, me?.cluster.isEmbedded ? t.settings.embedded : me?.cluster.name || undefined],
          [t.settings.server, me?.cluster.server ? <code key="server">{me.cluster.server}</code> : undefined],
          [t.settings.expires, ends === undefined ? t.settings.expiresNever : absoluteText(ends, t.lang)],
        ]}
      />
      {me?.cluster.isEmbedded && (
        <Button danger className="pl-after-facts" data-action="logout-everywhere" onClick={() => setAsking(true)}>
          {t.settings.logOutEverywhere}
        </Button>
      )}
    </Section>
  );
}

export default function SettingsPage() {
  const t = useText();
  return (
    <Page name="settings" title={t.settings.title}>
      <div className="pl-column">
        <Appearance />
        <Logs />
        <SessionFacts />
      </div>
    </Page>
  );
}
