import { DesktopOutlined, LogoutOutlined, MoonOutlined, QuestionOutlined, SettingOutlined, SunOutlined, UserOutlined } from '@ant-design/icons';
import { Button, Dropdown, Tooltip } from 'antd';
import type { ReactNode } from 'react';
import { PaletteButton } from '../palette/PaletteButton.tsx';
import { clockText } from '../parts/time.ts';
import { openHelp } from './HelpDialog.tsx';
import { live, useConnection } from './hooks.ts';
import { useText } from './i18n.tsx';
import { NamespacePicker } from './NamespacePicker.tsx';
import { usePreferences, type ThemeChoice } from './preferences.ts';
import { navigate } from './router.tsx';
import { useSession } from './session.tsx';

function ConnectionDot() {
  const { common, lang } = useText();
  const state = useConnection();
  const words = common.connection;
  const hint = {
    live: words.liveHint,
    connecting: words.connectingHint,
    lost: words.lostHint(live.heardAt === 0 ? words.neverHeard : clockText(live.heardAt, lang)),
  }[state];
  return (
    <Tooltip title={hint}>
      <span className={`pl-connection pl-connection-${state}`} data-connection={state} tabIndex={0}>
        <i aria-hidden />
        <span>{words[state]}</span>
      </span>
    </Tooltip>
  );
}

function LanguageSwitch() {
  const { common } = useText();
  const [{ language }, set] = usePreferences();
  const other = language === 'en' ? '中' : 'EN';
  return (
    <Tooltip title={common.bar.switchLanguage}>
      <Button
        type="text"
        lang={language === 'en' ? 'zh' : 'en'}
        aria-label={`${other}: ${common.bar.switchLanguage}`}
        onClick={() => set({ language: language === 'en' ? 'zh' : 'en' })}
        className="pl-language"
      >
        {other}
      </Button>
    </Tooltip>
  );
}

const THEME_ICONS: Record<ThemeChoice, ReactNode> = { light: <SunOutlined />, dark: <MoonOutlined />, system: <DesktopOutlined /> };

function ThemeSwitch() {
  const { common } = useText();
  const [{ theme }, set] = usePreferences();
  const choices: ThemeChoice[] = ['light', 'dark', 'system'];
  return (
    <Dropdown
      trigger={['click']}
      menu={{
        selectable: true,
        selectedKeys: [theme],
        items: choices.map((choice) => ({ key: choice, icon: THEME_ICONS[choice], label: common.theme[choice] })),
        onClick: ({ key }) => set({ theme: key as ThemeChoice }),
      }}
    >
      <Button type="text" icon={THEME_ICONS[theme]} aria-label={common.bar.theme} />
    </Dropdown>
  );
}

function Person() {
  const { common } = useText();
  const { me, logout } = useSession();
  return (
    <Dropdown
      trigger={['click']}
      menu={{
        items: [
          { key: 'settings', icon: <SettingOutlined />, label: common.nav.settings },
          { key: 'help', icon: <QuestionOutlined />, label: common.bar.help },
          { type: 'divider' },
          { key: 'logout', icon: <LogoutOutlined />, label: common.bar.logOut },
        ],
        onClick: ({ key }) => {
          if (key === 'settings') navigate('/settings');
          else if (key === 'help') openHelp();
          else void logout();
        },
      }}
    >
      <Button type="text" icon={<UserOutlined />} className="pl-person" aria-label={`${common.bar.person}: ${me?.name ?? ''}`}>
        <span className="pl-person-name">{me?.name}</span>
      </Button>
    </Dropdown>
  );
}

export function TopBar({ menu }: { menu: ReactNode }) {
  return (
    <header className="pl-bar">
      {menu}
      <NamespacePicker />
      <div className="pl-bar-space" />
      <PaletteButton />
      <ConnectionDot />
      <LanguageSwitch />
      <ThemeSwitch />
      <Person />
    </header>
  );
}
