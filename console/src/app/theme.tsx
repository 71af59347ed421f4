/** The look: antd's tokens and our CSS variables, made from one palette. */
import { App, ConfigProvider, theme as antdTheme, type ThemeConfig } from 'antd';
import enUS from 'antd/es/locale/en_US.js';
import { createContext, useContext, useEffect, useLayoutEffect, useMemo, useState, type ReactNode } from 'react';
import { nonce } from './guards.ts';
import { usePreferences, type Density, type Language } from './preferences.ts';
import { fetchPart } from './retry.ts';
import { cssVariables, palettes, type ThemeName } from './tokens.ts';

const FONT = `'Inter Variable', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'WenQuanYi Zen Hei', system-ui, sans-serif`;
export const MONO = `'JetBrains Mono', ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'PingFang SC', 'Noto Sans CJK SC', 'WenQuanYi Zen Hei', monospace`;

export function antdConfig(name: ThemeName, density: Density): ThemeConfig {
  const colour = palettes[name];
  const isCompact = density === 'compact';
  return {
    algorithm: name === 'dark' ? antdTheme.darkAlgorithm : antdTheme.defaultAlgorithm,
    token: {
      fontFamily: FONT,
      fontFamilyCode: MONO,
      fontSize: 14,
      controlHeight: isCompact ? 32 : 36,
      borderRadius: 8,
      colorPrimary: colour.brand,
      colorLink: colour.brand,
      colorLinkHover: name === 'dark' ? '#A3BEFF' : '#1D49B8',
      colorLinkActive: name === 'dark' ? '#A3BEFF' : '#1D49B8',
      colorInfo: colour.brand,
      colorSuccess: colour.tones.succeeded.solid,
      colorSuccessBg: colour.tones.succeeded.soft,
      colorWarning: colour.tones.pending.solid,
      colorError: name === 'dark' ? '#FF7A80' : '#C92A35',
      colorErrorText: colour.tones.failed.text,
      colorWarningText: colour.tones.pending.text,
      colorSuccessText: colour.tones.succeeded.text,
      colorTextBase: colour.ink,
      colorBgBase: colour.surface,
      colorText: colour.ink,
      colorTextSecondary: colour.inkSoft,
      colorTextTertiary: colour.inkFaint,
      colorTextQuaternary: colour.inkFaint,
      colorTextDescription: colour.inkFaint,
      colorTextPlaceholder: colour.inkFaint,
      colorTextDisabled: colour.inkFaint,
      colorTextHeading: colour.ink,
      colorTextLightSolid: colour.onBrand,
      colorIcon: colour.inkFaint,
      colorBgContainer: colour.surface,
      colorBgElevated: colour.raised,
      colorBgLayout: colour.canvas,
      colorBgSpotlight: name === 'dark' ? '#33415A' : '#1F2937',
      colorBorder: colour.lineStrong,
      colorBorderSecondary: colour.line,
      colorSplit: colour.line,
      colorFillQuaternary: colour.sunken,
      colorFillTertiary: colour.sunken,
      boxShadowTertiary: 'none',
      motionDurationFast: '0.08s',
      motionDurationMid: '0.12s',
      motionDurationSlow: '0.16s',
    },
    components: {
      Table: {
        cellFontSize: 13,
        cellFontSizeMD: 13,
        cellFontSizeSM: 13,
        cellPaddingBlock: isCompact ? 7 : 12,
        cellPaddingBlockMD: isCompact ? 7 : 12,
        cellPaddingBlockSM: isCompact ? 6 : 10,
        headerBg: 'transparent',
        headerColor: colour.inkFaint,
        headerSplitColor: 'transparent',
        rowHoverBg: colour.sunken,
        rowSelectedBg: colour.brandSoft,
        rowSelectedHoverBg: colour.brandSoft,
      },
      // Text of a button under the pointer keeps its contrast.
      Button: { defaultHoverColor: name === 'dark' ? '#A3BEFF' : '#1D49B8', defaultActiveColor: name === 'dark' ? '#A3BEFF' : '#1D49B8', primaryShadow: 'none', defaultShadow: 'none', dangerShadow: 'none', dangerColor: name === 'dark' ? '#1B0A0C' : '#FFFFFF', fontWeight: 500 },
      Tabs: { horizontalItemGutter: 24, titleFontSize: 14, itemColor: colour.inkSoft },
      Tooltip: { colorTextLightSolid: '#FFFFFF' },
      Segmented: { trackBg: colour.sunken, itemColor: colour.inkSoft, itemSelectedBg: name === 'dark' ? '#2A374E' : colour.surface },
      Card: { headerFontSize: 14 },
      Modal: { titleFontSize: 16 },
      Alert: { defaultPadding: '9px 14px', withDescriptionPadding: '12px 14px', withDescriptionIconSize: 18, fontSizeLG: 14 },
    },
  };
}

const ThemeContext = createContext<ThemeName>('light');

/** Which theme is on, after `system` is resolved. */
export function useThemeName(): ThemeName {
  return useContext(ThemeContext);
}

function useSystemTheme(): ThemeName {
  const [query] = useState(() => window.matchMedia('(prefers-color-scheme: dark)'));
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const follow = () => setDark(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, [query]);
  return isDark ? 'dark' : 'light';
}

type AntdLocale = typeof enUS;

function useAntdLocale(language: Language): AntdLocale {
  const [locale, setLocale] = useState<AntdLocale>(enUS);
  useEffect(() => {
    let isCurrent = true;
    if (language === 'en') setLocale(enUS);
    else
      fetchPart(() => import('antd/es/locale/zh_CN.js')).then(
        (module) => isCurrent && setLocale(module.default),
        (error: unknown) => console.error(error),
      );
    return () => {
      isCurrent = false;
    };
  }, [language]);
  return locale;
}

export function ThemeProvider({ children }: { children: ReactNode }) {
  const [{ theme, density, language }] = usePreferences();
  const system = useSystemTheme();
  const name = theme === 'system' ? system : theme;
  const locale = useAntdLocale(language);
  const config = useMemo(() => antdConfig(name, density), [name, density]);
  useLayoutEffect(() => {
    const root = document.documentElement;
    root.dataset.theme = name;
    root.dataset.density = density;
    for (const [variable, value] of Object.entries(cssVariables(name))) root.style.setProperty(variable, value);
  }, [name, density]);
  return (
    <ThemeContext value={name}>
      <ConfigProvider csp={{ nonce }} theme={config} locale={locale} wave={{ disabled: true }} button={{ autoInsertSpace: false }}>
        <App component={false} message={{ top: 64 }} notification={{ top: 64 }}>
          {children}
        </App>
      </ConfigProvider>
    </ThemeContext>
  );
}
